// Adds the token to what the conformance runner sends, which has no option for one. Prints its port.
import http from 'node:http'

const [target, token] = process.argv.slice(2)
const { hostname, port } = new URL(target)
const server = http.createServer((request, response) => {
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
