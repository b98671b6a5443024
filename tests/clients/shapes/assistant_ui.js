// assistant-ui's own repository imports what the server says, and exports it again. What it exports is printed.
import { MessageRepository } from "@assistant-ui/core/internal";

const form = await (await fetch(process.argv[2])).json();
const items = form.messages.map(({ parentId, message }) => ({
  parentId,
  message: { ...message, createdAt: new Date(message.createdAt) },
}));
if (items.some(({ message }) => Number.isNaN(message.createdAt.getTime()))) throw new Error("a time is not a time");

const repository = new MessageRepository();
repository.import({ headId: form.headId, messages: items });
const exported = repository.export();
const branches = exported.messages.map(({ message }) => [message.id, repository.getBranches(message.id)]);
console.log(JSON.stringify({ exported, path: repository.getMessages(), branches: Object.fromEntries(branches) }));
