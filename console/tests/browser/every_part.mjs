// One part of every type that a history has, with every field that is shown.

const TIME = "2026-01-22T21:47:29.763430+00:00";
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="140"><rect width="320" height="140" fill="#2e8b68"/></svg>`;

const activity = (activity_type, more) => ({
  type: "activity",
  activity_type,
  source: "llamaindex_agent",
  content: null,
  timestamp: TIME,
  tools: null,
  results: null,
  display_info: null,
  ...more,
});

export const EVERY_PART = {
  text: {
    type: "text_output",
    text: [
      "## The weather\n\nIt is **18 °C** and *partly cloudy* in Paris. See [the forecast](https://example.org/paris) or https://example.org.",
      "1. Take a coat\n2. Leave the `umbrella` at home\n   - or not",
      "> It never rains in Paris.",
      "| Day | Morning | High |\n|---|:-:|--:|\n| Mon | sun | 18 |\n| Tue | rain | 14 |",
      '```rust\nfn main() {\n    println!("Bonjour, {}", "Paris");\n}\n```',
      "![a map](https://example.org/map.png)",
    ].join("\n\n"),
  },
  thought: activity("thought", { content: "They want **two** things: the weather now, and figures of the year." }),
  request: activity("tool_request", {
    tools: [{ name: "search_web", arguments: { query: "weather Paris", filters: { lang: "fr", days: 3 } }, id: "call_1" }],
    display_info: { id: "tool_request", friendly_name: "🔍 Recherche web", icon: "🔍", category: "search", description: "Looks things up", color: "#b07cff" },
  }),
  result: activity("tool_result", {
    results: [{ name: "search_web", content: "Weather in Paris: 18°C, partly cloudy", is_error: false, call_id: "call_1" }],
    display_info: { id: "tool_result", friendly_name: "✅ Résultat", icon: "✅", category: "search" },
  }),
  failure: activity("tool_result", {
    results: [{ name: "read_file", content: '{"error":"no such file","path":"/tmp/x"}', is_error: true, call_id: "call_2" }],
  }),
  error: activity("error", { content: "The model was asked too often." }),
  other: activity("skill_loading", { content: "Loading charts", display_info: { friendly_name: "Skill", icon: "🎓" } }),
  options: {
    type: "options_block",
    definition: {
      question: "Que souhaitez-vous faire ?",
      options: [
        { text: "📊 Créer un graphique", value: "create_chart" },
        { text: "📄 Générer un PDF", value: "create_pdf" },
      ],
    },
  },
  diagram: { type: "mermaid_diagram", definition: "graph TD; A[Ask]-->B{Known?}; B-->|yes| C[Answer]; B-->|no| D[Search the web]; D-->C" },
  sequence: { type: "mermaid_diagram", definition: "sequenceDiagram\n  Person->>Agent: What is the weather?\n  Agent-->>Person: It is mild" },
  "diagram that is wrong": { type: "mermaid_diagram", definition: "graph TD; A[[" },
  chart: {
    type: "chart",
    chartConfig: {
      type: "bar",
      data: {
        labels: ["Jan", "Feb", "Mar", "Apr"],
        datasets: [
          { label: "Visitors", data: [12, 9, 15, 22] },
          { label: "Rain", data: [40, 31, 35, 20], type: "line" },
        ],
      },
      options: { plugins: { title: { display: true, text: "Paris, so far" } } },
    },
  },
  "chart that is wrong": { type: "chart", chartConfig: { type: "no such kind", data: {} } },
  table: {
    type: "table",
    caption: "Visitors by month",
    headers: ["Month", "Visitors", "Note"],
    rows: [
      ["January", 1200, "cold"],
      ["February", 980, null],
      ["March", 15310, { fashion: "week" }],
    ],
  },
  form: {
    type: "form",
    definition: {
      title: "Book a table",
      description: "We need a little more.",
      fields: [
        { name: "name", label: "Your name", type: "text", required: true, placeholder: "Ada" },
        { name: "people", label: "People", type: "number", default: 2 },
        { name: "where", label: "Where", type: "select", options: [{ value: "in", label: "Inside" }, { value: "out", label: "Terrace" }], default: "out" },
        { name: "diet", label: "Diet", type: "radio", options: ["any", "vegetarian"], default: "any" },
        { name: "remind", label: "Remind me", type: "checkbox", default: true },
        { name: "more", label: "Anything else", type: "textarea", description: "As you like" },
      ],
      submitButton: { text: "Book" },
    },
  },
  picture: { type: "image", url: `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`, alt: "A green field", caption: "In the conversation" },
  "picture elsewhere": { type: "image", url: "https://example.org/elsewhere.png", alt: "Somewhere else" },
  file: { type: "file_content_output", filename: "notes.txt", content_base64: "aGVsbG8=", mime_type: "text/plain" },
  "file elsewhere": {
    type: "file_reference_output",
    file_id: "f1",
    filename: "report.pdf",
    mime_type: "application/pdf",
    download_url: "https://example.org/report.pdf",
    size_bytes: 481_233,
  },
  link: { type: "file_download_link", file_id: "f1", label: "Your invoice", action: "download", icon: null, metadata: null },
  media: { type: "media", name: "clip.mp3", mime_type: "audio/mpeg", content: "aGVsbG8=" },
  json: { type: "json_data", data: { a: [1, null], b: { c: "d" } }, filename: null },
  yaml: { type: "yaml_data", data: { b: 1 }, filename: "b.yaml" },
  unknown: { type: "hologram", anything: ["kept", 2, 3] },
};
