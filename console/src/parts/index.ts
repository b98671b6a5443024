// Which view shows which type of part.

import { type Part, words } from "../history";
import { ActivityView } from "./activity";
import { chart } from "./chart";
import { data } from "./data";
import { diagram } from "./diagram";
import { includedFile, keptFile } from "./file";
import { form } from "./form";
import { options } from "./options";
import { picture } from "./picture";
import { table } from "./table";
import { MarkdownView } from "./text";
import type { PartView, Surroundings } from "./view";

export const viewOf = (part: Part, around: Surroundings): PartView => {
  const view = make(part, around);
  view.element.classList.add("part");
  view.element.dataset.type = words(part.type);
  return view;
};

const make = (part: Part, around: Surroundings): PartView => {
  switch (part.type) {
    case "text_output":
      return new TextView(part);
    case "activity":
      return new ActivityView(part);
    case "options_block":
      return { element: options(part) };
    case "mermaid_diagram":
      return { element: diagram(part) };
    case "chart":
      return { element: chart(part) };
    case "table":
      return { element: table(part) };
    case "form":
      return { element: form(part) };
    case "image":
      return { element: picture(part, around) };
    case "file_content_output":
      return { element: includedFile(part) };
    case "file_reference_output":
    case "file_download_link":
      return { element: keptFile(part, around) };
    case "media":
      return { element: media(part, around) };
    case "json_data":
    case "yaml_data":
      return { element: data(words(part.filename) || "Data", part.data, true) };
    default:
      // Nothing that was stored is hidden, whatever it is.
      return { element: data(words(part.type) ? `Part of the type ${part.type}` : "Part without a type", part) };
  }
};

class TextView implements PartView {
  #view: MarkdownView;
  readonly element: HTMLElement;

  constructor(part: Part) {
    this.#view = new MarkdownView(words(part.text));
    this.element = this.#view.element;
  }

  show(part: Part, whole: boolean): void {
    this.#view.show(words(part.text), whole);
  }
}

// A file by its kind: a picture is shown, anything else is saved.
const media = (part: Part, around: Surroundings): HTMLElement => {
  const kind = words(part.mime_type);
  const content = words(part.content);
  if (kind.startsWith("image/")) {
    const inside = content.startsWith("data:") ? content : `data:${kind};base64,${content}`;
    return picture({ ...part, url: content ? inside : part.url }, around);
  }
  return content ? includedFile(part) : keptFile(part, around);
};
