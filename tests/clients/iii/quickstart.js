// The quickstart of session-manager, on the SDK for Node.js: a conversation, and a reply that is heard as it grows.
//
// node quickstart.js <url>
import { registerWorker } from 'iii-sdk'

const iii = registerWorker(process.argv[2])
const call = (function_id, payload) => iii.trigger({ function_id, payload, timeoutMs: 20000 })

const { session_id } = await call('session::create', { title: 'Weather question', metadata: { owner: 'u_1' } })
const content = (text) => [{ type: 'text', text }]
await call('session::append', {
  session_id,
  message: { role: 'user', content: content("What's the weather?"), timestamp: 1717800000000 },
})

const revisions = []
const heard = new Promise((resolve) => {
  iii.registerFunction('my-ui::on-message-updated', async (event) => {
    revisions.push(event.revision)
    if (event.revision === 3) resolve(event.message.content[0].text)
    return { ok: true }
  })
})
iii.registerTrigger({
  type: 'session::message-updated',
  function_id: 'my-ui::on-message-updated',
  config: { session_id, roles: ['assistant'] },
})

const reply = { role: 'assistant', content: content(''), model: 'm', provider: 'p', stop_reason: 'end', timestamp: 1717800000001 }
const { entry_id } = await call('session::append', { session_id, message: reply })
let text = ''
for (const token of ['It ', 'will ', 'rain.']) {
  text += token
  await call('session::update-message', { session_id, entry_id, content: content(text) })
}
const last = await heard
const { messages } = await call('session::messages', { session_id })
const texts = messages.map(({ message }) => message.content[0].text)
const refused = await call('session::append', { session_id: 'nobody', message: reply }).catch((error) => String(error))
console.log(JSON.stringify({ texts, revisions, last, refused: refused.includes('session/not_found: ') }))
process.exit(0)
