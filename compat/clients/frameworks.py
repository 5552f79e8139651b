"""Frameworks that speak to chat completions: each holds a talk of two turns, plain and streamed (S62), and takes a limit of the run as
a reply (S50)."""

import asyncio

FIRST = "The first answer, word by word."
SECOND = "And the second one."


def use_litellm(server):
    import litellm

    fields = {"model": "openai/solo", "api_base": server.url + "/v1", "api_key": server.token}

    def talk(streams):
        messages = [{"role": "user", "content": f"litellm, {streams}"}]
        for expected in [FIRST, SECOND]:
            reply = litellm.completion(messages=messages, stream=streams, **fields)
            if streams:
                text = "".join(chunk.choices[0].delta.content or "" for chunk in reply)
            else:
                text = reply.choices[0].message.content
            assert text == expected, text
            messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]

    talk(False)
    talk(True)
    # A question, and its answer by the same history.
    ask = {**fields, "model": "openai/ask"}
    messages = [{"role": "user", "content": "litellm asks."}]
    question = litellm.completion(messages=messages, **ask).choices[0].message.content
    messages += [{"role": "assistant", "content": question}, {"role": "user", "content": "I am stuck."}]
    assert litellm.completion(messages=messages, **ask).choices[0].message.content == "Thanks."
    limited = litellm.completion(messages=messages[:1], **{**fields, "model": "openai/silent-limit"}).choices[0]
    assert limited.finish_reason == "length" and limited.message.content, limited


def use_langchain(server):
    from langchain_openai import ChatOpenAI

    def model(team):
        return ChatOpenAI(model=team, base_url=server.url + "/v1", api_key=server.token)

    def talk(streams):
        messages = [("user", f"langchain, {streams}")]
        for expected in [FIRST, SECOND]:
            if streams:
                text = "".join(chunk.text for chunk in model("solo").stream(messages))
            else:
                text = model("solo").invoke(messages).text
            assert text == expected, text
            messages += [("assistant", text), ("user", "And then?")]

    talk(False)
    talk(True)
    limited = model("silent-limit").invoke([("user", "Count.")])
    assert limited.response_metadata["finish_reason"] == "length" and limited.text, limited


def use_pydantic_ai(server):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=server.url + "/v1", api_key=server.token)

    def agent(team):
        return Agent(OpenAIChatModel(team, provider=provider))

    async def talk():
        first = await agent("solo").run("pydantic-ai, plain")
        second = await agent("solo").run("And then?", message_history=first.all_messages())
        assert (first.output, second.output) == (FIRST, SECOND), (first.output, second.output)
        async with agent("solo").run_stream("pydantic-ai, streamed") as stream:
            assert [text async for text in stream.stream_text()][-1] == FIRST
            history = stream.all_messages()
        async with agent("solo").run_stream("And then?", message_history=history) as stream:
            assert [text async for text in stream.stream_text()][-1] == SECOND
        for team in ["limit", "silent-limit"]:
            assert (await agent(team).run("Count.")).output
            async with agent(team).run_stream("Count.") as stream:
                assert await stream.get_output()

    asyncio.run(talk())


def use_openai_agents(server):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    async def talk():
        client = AsyncOpenAI(base_url=server.url + "/v1", api_key=server.token)

        def agent(team):
            return Agent(name="caller", model=OpenAIChatCompletionsModel(team, client))

        async def streamed(items):
            result = Runner.run_streamed(agent("solo"), items)
            pieces = [
                event.data.delta
                async for event in result.stream_events()
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            ]
            assert len(pieces) > 2, pieces
            return result

        def next_items(result):
            return result.to_input_list() + [{"role": "user", "content": "And then?"}]

        first = await Runner.run(agent("solo"), "openai-agents, plain")
        second = await Runner.run(agent("solo"), next_items(first))
        assert (first.final_output, second.final_output) == (FIRST, SECOND), (first, second)
        first = await streamed("openai-agents, streamed")
        second = await streamed(next_items(first))
        assert (first.final_output, second.final_output) == (FIRST, SECOND), (first, second)
        for team in ["limit", "silent-limit"]:
            assert (await Runner.run(agent(team), "Count.")).final_output
            result = Runner.run_streamed(agent(team), "Count.")
            async for _ in result.stream_events():
                pass
            assert result.final_output

    asyncio.run(talk())


ALL = {
    "litellm": use_litellm,
    "langchain-openai": use_langchain,
    "pydantic-ai-slim": use_pydantic_ai,
    "openai-agents": use_openai_agents,
}
