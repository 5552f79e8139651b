// Adds the token to what the conformance runner sends, which has no option for one, and forwards at most `RATE` requests a second: the
// server refuses a token more than 20. Prints its port.
import http from 'node:http'

const [target, token] = process.argv.slice(2)
const { hostname, port } = new URL(target)
const RATE = 15
let next = 0
const turn = () => {
  next = Math.max(next + 1000 / RATE, Date.now())
  return new Promise(resolve => setTimeout(resolve, next - Date.now()))
}

const server = http.createServer(async (request, response) => {
  await turn()
  const headers = { ...request.headers, authorization: `Bearer ${token}` }
  const options = { hostname, port, path: request.url, method: request.method, headers, agent: false }
  const forwarded = http.request(options, reply => {
    response.writeHead(reply.statusCode, reply.headers)
    response.flushHeaders()
    reply.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  response.on('close', () => forwarded.destroy())
  request.pipe(forwarded)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
