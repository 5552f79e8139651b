// The `openai` package for Node: S44 to S48, S50 to S52, S54. The environment has the server's URL and a token.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: `${process.env.SERVER_URL}/v1`, apiKey: process.env.SERVER_TOKEN });
const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const complete = (model, messages, more = {}) => client.chat.completions.create({ model, messages, ...more });

const checks = {
    async s44_models() {
        const ids = [];
        for await (const model of client.models.list()) ids.push(model.id);
        assert(ids.includes('talk') && ids.includes('fixed-answer'), ids.join());
        assert.equal((await client.models.retrieve('talk')).id, 'talk');
        await assert.rejects(complete('none', [user('x')]), OpenAI.NotFoundError);
    },
    async s45_plain() {
        const { choices: [choice], usage } = await complete('talk', [user('Count, Node.')]);
        assert.deepEqual([choice.message.content, choice.finish_reason, usage], ['four', 'stop', undefined]);
        assert.equal((await complete('solo', [user('Answer.')])).usage.total_tokens, 17);
    },
    async s46_s47_s48_streamed() {
        for (const [model, text] of [['talk', 'four'], ['solo', 'The first answer, word by word.'], ['together', 'That was all.']]) {
            const stream = client.chat.completions.stream({ model, messages: [user('Go, Node.')], stream_options: { include_usage: true } });
            const chunks = [];
            stream.on('chunk', (chunk) => chunks.push(chunk));
            const message = await stream.finalMessage();
            assert.deepEqual([message.role, message.content], ['assistant', text]);
            assert.equal(chunks.filter((chunk) => chunk.usage).length, model === 'talk' ? 0 : 1);
            assert.equal(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.created} ${chunk.model}`)).size, 1);
        }
    },
    async s50_limits() {
        for (const model of ['limit', 'silent-limit']) {
            const { choices: [choice] } = await complete(model, [user('Count, Node.')]);
            assert.equal(choice.finish_reason, 'length');
            assert(choice.message.content.trim());
        }
    },
    async s51_s52_question_and_history() {
        const asked = await complete('ask', [user('Help Node.')]);
        const history = [user('Help Node.'), assistant(asked.choices[0].message.content), user('I am stuck.')];
        assert.equal((await complete('ask', history)).choices[0].message.content, 'Thanks.');
        await complete('talk', [user('Node counts.')]);
        const second = await complete('talk', [user('Node counts.'), assistant('four'), user('More.')]);
        assert.equal(second.choices[0].message.content, 'eight');
    },
    async s54_failures() {
        const once = { maxRetries: 0 };
        const body = { model: 'fails', messages: [user('Talk, Node.')] };
        await assert.rejects(client.chat.completions.create(body, once), OpenAI.InternalServerError);
        const read = async () => {
            for await (const chunk of await client.chat.completions.create({ ...body, stream: true }, once)) void chunk;
        };
        await assert.rejects(read(), /the key was refused/);
    },
    async s60_refused() {
        await assert.rejects(complete('talk', [user('x')], { n: 2 }), (error) => error instanceof OpenAI.BadRequestError && error.param === 'n');
    },
};
for (const [name, check] of Object.entries(checks)) {
    await check();
    console.log(`ok openai (Node): ${name}`);
}
