// A form that a person was asked to fill in. This page only shows it: nothing can be entered and nothing is sent.

import { element, named } from "../dom";
import { type Fields, isObject, listOf, type Part, words } from "../history";
import { data } from "./data";

export const form = (part: Part): HTMLElement => {
  const definition = isObject(part.definition) ? part.definition : {};
  const fields = listOf(definition.fields).filter(isObject);
  const button = isObject(definition.submitButton) ? definition.submitButton.text : definition.submit_label;
  const inside = named("fieldset", "form");
  inside.disabled = true;
  const title = words(definition.title);
  inside.append(
    ...(title ? [named("legend", "", title)] : []),
    ...(words(definition.description) ? [named("p", "", words(definition.description))] : []),
    ...fields.map(field),
    ...(fields.length === 0 ? [data("Form", part.definition)] : []),
    element("button", { type: "button", textContent: words(button) || "Send" }),
  );
  return inside;
};

const field = (given: Fields): HTMLElement => {
  const kind = words(given.type ?? given.fieldType ?? given.field_type).toLowerCase();
  const label = words(given.label ?? given.name);
  const required = given.required === true ? " *" : "";
  const offered = listOf(given.options);
  const help = words(given.description ?? given.help);
  const made = kind === "checkbox" && offered.length === 0 ? checkbox(given) : control(kind, given, offered);
  return named("label", kind === "checkbox" && offered.length === 0 ? "beside" : "", named("span", "", label + required), made, help ? named("small", "", help) : null);
};

const control = (kind: string, given: Fields, offered: unknown[]): HTMLElement => {
  const value = words(given.default ?? given.value ?? given.defaultValue);
  if (offered.length > 0 && (kind === "radio" || kind === "checkbox")) {
    const choices = named("span", "choices");
    for (const one of offered) {
      const input = element("input", { type: kind, checked: valueOf(one) === value });
      choices.append(named("span", "choice", input, " ", nameOf(one)));
    }
    return choices;
  }
  if (offered.length > 0) {
    const select = element("select");
    for (const one of offered) select.append(element("option", { textContent: nameOf(one), selected: valueOf(one) === value }));
    return select;
  }
  const placeholder = words(given.placeholder);
  if (kind === "textarea") return element("textarea", { placeholder, value, rows: 3 });
  const type = ["number", "date", "time", "email", "password", "url", "tel", "range"].includes(kind) ? kind : "text";
  return element("input", { type, placeholder, value });
};

const checkbox = (given: Fields): HTMLElement =>
  element("input", { type: "checkbox", checked: given.default === true || given.value === true });

const nameOf = (option: unknown): string =>
  isObject(option) ? words(option.label ?? option.text ?? option.value) : words(option);

const valueOf = (option: unknown): string => (isObject(option) ? words(option.value) : words(option));
