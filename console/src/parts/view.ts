// What shows one part of a message.

import type { Part } from "../history";

export interface PartView {
  readonly element: HTMLElement;
  // Shows the part as it is now; without it, another view takes its place. `whole` says that no more will come.
  show?(part: Part, whole: boolean): void;
}

// What the page around it gives to a part.
export interface Surroundings {
  // The address of the session's attachments, up to the id.
  attachments: string;
  // Reads an address of this server, with the key.
  load(address: string): Promise<Blob>;
}
