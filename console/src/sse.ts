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

  // The frames that the piece completes. Comments and fields that nobody knows are skipped. What has no end yet is kept as it is and looked
  // at once, for a message may be large and come in many pieces.
  read(piece: string): Frame[] {
    const end = piece.lastIndexOf("\n");
    if (end < 0) {
      this.#rest += piece;
      return [];
    }
    const lines = (this.#rest + piece.slice(0, end)).split("\n");
    this.#rest = piece.slice(end + 1);
    return lines.map((line) => this.#line(line.endsWith("\r") ? line.slice(0, -1) : line)).filter((frame) => frame !== null);
  }

  // An empty line ends a frame.
  #line(line: string): Frame | null {
    if (line !== "") {
      this.#field(line);
      return null;
    }
    const frame = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const complete = this.#data.length > 0;
    this.#id = null;
    this.#event = "";
    this.#data = [];
    return complete ? frame : null;
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
