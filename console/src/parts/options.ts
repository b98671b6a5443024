// Options that a person was offered. This page only shows them.

import { element, named } from "../dom";
import { isObject, listOf, type Part, words } from "../history";

export const options = (part: Part): HTMLElement => {
  const definition = isObject(part.definition) ? part.definition : {};
  const list = named("ul", "options");
  for (const option of listOf(definition.options)) {
    const shown = isObject(option) ? words(option.text ?? option.label ?? option.value) : words(option);
    const value = isObject(option) ? words(option.value) : "";
    list.append(element("li", { textContent: shown, title: value }));
  }
  return named("section", "offered", named("p", "question", words(definition.question)), list);
};
