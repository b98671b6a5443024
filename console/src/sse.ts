// Reads event streams (SSE) from text that comes in pieces, cut anywhere.

export interface Frame {
  id: string | null;
  event: string;
  data: string;
}

export class FrameReader {
  #rest = "";
  #id: string | null = null;
  #event = "";
  #data: string[] = [];

  // The frames that the piece completes. Comments and fields that nobody knows are skipped.
  read(piece: string): Frame[] {
    const frames: Frame[] = [];
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line !== "") {
        this.#field(line);
      } else {
        if (this.#data.length > 0) {
          frames.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
        }
        this.#id = null;
        this.#event = "";
        this.#data = [];
      }
    }
    return frames;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "id") this.#id = value;
    else if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
  }
}
