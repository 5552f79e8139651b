"""The `openai` package for Python: S44 to S51, S54, S55."""

import contextlib
import io

import openai

from server import HERE


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


class Checks:
    def __init__(self, server):
        self.server = server
        self.client = openai.OpenAI(base_url=server.url + "/v1", api_key=server.token)

    def complete(self, team, *messages, **fields):
        return self.client.chat.completions.create(model=team, messages=list(messages), **fields)

    def stream(self, team, *messages, **fields):
        with self.client.chat.completions.stream(model=team, messages=list(messages), **fields) as stream:
            chunks = [event.chunk for event in stream if event.type == "chunk"]
            return chunks, stream.get_final_completion()

    def s44_models(self):
        ids = [model.id for model in self.client.models.list()]
        assert {"talk", "solo", "fixed-answer"} <= set(ids), ids
        assert self.client.models.retrieve("talk").id == "talk"
        for call in [lambda: self.client.models.retrieve("none"), lambda: self.complete("none", user("x"))]:
            error = raised(openai.NotFoundError, call)
            assert error.code == "model_not_found", error.code

    def s45_s49_plain(self):
        talk = self.complete("talk", user("Count."))
        choice = talk.choices[0]
        assert (choice.message.content, choice.finish_reason) == ("four", "stop"), talk
        assert talk.usage is None, "unknown tokens are absent"
        solo = self.complete("solo", user("Answer."))
        assert (solo.usage.prompt_tokens, solo.usage.completion_tokens, solo.usage.total_tokens) == (11, 6, 17)
        one = self.server.get(f"/api/v1/conversations/{solo.polylogue['conversation']}")
        assert (one["usage"]["input"], one["usage"]["output"]) == (11, 6), one["usage"]

    def s46_s47_s48_streamed(self):
        for team, text in [("talk", "four"), ("solo", "The first answer, word by word."), ("together", "That was all.")]:
            for fields in [{}, {"stream_options": {"include_usage": True}}]:
                chunks, final = self.stream(team, user("Go."), **fields)
                message = final.choices[0].message
                assert (message.role, message.content) == ("assistant", text), final
                assert final.choices[0].finish_reason == "stop", final
                assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
                ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
                assert ends == ["stop"], ends
                counted = [chunk.usage for chunk in chunks if chunk.usage]
                assert len(counted) == (1 if fields and team != "talk" else 0), counted
        pieces = [chunk for chunk in self.stream("solo", user("Go."))[0] if chunk.choices[0].delta.content]
        assert len(pieces) > 3, "the only participant streams into the content"

    def s46_shipped_teams(self):
        for team, text in [("fixed-answer", "今天的天气情况怎么样"), ("few-shot", "昨天天气")]:
            plain = self.complete(team, user(text)).choices[0].message.content
            streamed = self.stream(team, user(text))[1].choices[0].message.content
            assert plain and plain == streamed, (plain, streamed)

    def s45_examples_of_the_documentation(self):
        for page in ["README.md", "docs/server.md"]:
            blocks = (HERE.parent.parent / page).read_text().split("```python\n")[1:]
            [example] = [block.split("```")[0] for block in blocks if "base_url" in block]
            code = example.replace("http://127.0.0.1:8787", self.server.url).replace("ply_…", self.server.token)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(code, page, "exec"), {})
            assert "Cordouan" in said.getvalue(), (page, said.getvalue())

    def s50_limits(self):
        for team in ["limit", "silent-limit"]:
            plain = self.complete(team, user("Count.")).choices[0]
            assert plain.finish_reason == "length" and plain.message.content.strip(), plain
            # The helper raises at `length`, as it does for a reply of a model that is cut off; the stream itself does not.
            stream = self.complete(team, user("Count."), stream=True)
            ends = [choice.finish_reason for chunk in stream for choice in chunk.choices if choice.finish_reason]
            assert ends == ["length"], ends
        lowered = self.complete("solo", user("Answer."), max_tokens=5).choices[0]
        assert lowered.finish_reason == "stop" and lowered.message.content.strip(), lowered
        own = self.complete("talk", user("Count.")).choices[0]
        assert own.finish_reason == "stop", own

    def s51_question(self):
        asked = self.complete("ask", user("Help."))
        assert asked.choices[0].finish_reason == "stop" and asked.polylogue["state"] == "waiting", asked
        question = asked.choices[0].message.content
        answered = self.complete("ask", user("Help."), assistant(question), user("I am stuck."))
        assert answered.choices[0].message.content == "Thanks.", answered
        assert answered.polylogue["conversation"] == asked.polylogue["conversation"]

    def s52_history(self):
        first = self.complete("talk", user("Count on."))
        second = self.complete("talk", user("Count on."), assistant("four"), user("More."))
        assert second.choices[0].message.content == "eight", second
        third, final = self.stream(
            "talk", user("Count on."), assistant("four"), user("More."), assistant("eight"), user("More!")
        )
        assert final.choices[0].message.content == "twelve", final
        ids = {first.polylogue["conversation"], second.polylogue["conversation"], third[-1].polylogue["conversation"]}
        assert len(ids) == 1, ids

    def s54_failures(self):
        client = self.client.with_options(max_retries=0)
        messages = [user("Talk.")]
        call = lambda: client.chat.completions.create(model="fails", messages=messages)
        assert "the key was refused" in str(raised(openai.InternalServerError, call))
        said = []

        def stream():
            for chunk in client.chat.completions.create(model="fails", messages=messages, stream=True):
                said.append(getattr(chunk.choices[0].delta, "reasoning_content", None) or "")

        assert "the key was refused" in str(raised(openai.APIError, stream))
        assert "".join(said) == "**Ann:** one\n\n", said

    def s55_retries(self):
        client = self.client.with_options(timeout=1.0, max_retries=2)
        reply = client.chat.completions.create(model="slow", messages=[user("Think.")])
        assert reply.choices[0].message.content == "At last.", reply
        logs = self.server.conversations("slow")
        assert [log["usage"]["calls"] for log in logs] == [1], logs

    def s60_refused(self):
        for fields in [{"n": 2}, {"logprobs": True}, {"tool_choice": "required"}, {"max_tokens": 0}]:
            error = raised(openai.BadRequestError, lambda: self.complete("talk", user("x"), **fields))
            assert error.param in fields, (error.param, fields)
        raw = self.client.chat.completions.with_raw_response
        named = raw.create(model="talk", messages=[user("x")], temperature=0.5)
        assert named.headers["x-polylogue-ignored"] == "temperature", named.headers
        stranger = self.client.with_options(api_key="ply_wrong")
        raised(openai.AuthenticationError, lambda: stranger.models.list())

    def s63_parallel(self):
        chunks, _ = self.stream("together", user("Go."))
        reasoning = "".join(
            getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks if chunk.choices
        )
        speakers = ["ann", "bob", "cleo"]
        for line in reasoning.splitlines():
            assert sum(f"-{name}" in line for name in speakers) <= 1, line
        places = [reasoning.index(f"alpha-{name}") for name in speakers]
        assert places == sorted(places), reasoning


def raised(kind, call):
    """The error of this kind that `call` raises."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def run(server):
    checks = Checks(server)
    names = [name for name in dir(checks) if name[0] == "s" and name[1:3].isdigit()]
    for name in names:
        getattr(checks, name)()
    return names
