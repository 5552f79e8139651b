// The TypeScript client of MCP against `polylogue serve`: both kinds of the protocol. Runs where its packages are.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const [url, token] = process.argv.slice(2)
const teams = readFileSync(0, 'utf8').split(/\s+/).filter(Boolean).sort()

async function connect(mode, elicitation) {
  const capabilities = elicitation ? { elicitation: { form: {} } } : {}
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode } })
  if (elicitation) {
    client.setRequestHandler('elicitation/create', async request => {
      assert.match(request.params.message, /^Pat is asked: /)
      return { action: 'accept', content: { answer: 'I am stuck.' } }
    })
  }
  const requestInit = { headers: { Authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  return client
}

async function talk(mode) {
  const client = await connect(mode, true)
  assert.deepEqual((await client.listTools()).tools.map(tool => tool.name), teams)
  const progress = []
  const onprogress = one => progress.push([one.progress, one.message])
  const result = await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress })
  assert.equal(result.content[0].text, 'three')
  assert.equal(result.structuredContent.state, 'done')
  assert.deepEqual(progress, [[1, 'Ann: one'], [2, 'Bob: two'], [3, 'Cy: three']])
  const asked = await client.callTool({ name: 'test_elicitation', arguments: {} })
  assert.equal(asked.structuredContent.result, 'state-ok')
  const limited = await client.callTool({ name: 'test_error_handling', arguments: {} })
  assert.ok(limited.isError && limited.structuredContent.state === 'limit')
  await client.close()
  const silent = await connect(mode, false)
  const waiting = (await silent.callTool({ name: 'test_elicitation', arguments: {} })).structuredContent
  assert.equal(waiting.state, 'waiting')
  const more = { conversation: waiting.conversation, message: 'I am stuck.' }
  const done = (await silent.callTool({ name: 'test_elicitation', arguments: more })).structuredContent
  assert.equal(done.state, 'done')
  await silent.close()
  console.log(`typescript client, ${JSON.stringify(mode)}: lists, calls, progress, question, waiting`)
}

for (const mode of [{ pin: '2026-07-28' }, 'auto', 'legacy']) await talk(mode)
