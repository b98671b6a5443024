//! `banyan call`: any function, by its id.

use std::io::{self, Read};

use banyan::{Effect, functions};
use clap::Args;

use super::{call_list, call_stream};
use crate::args::Globals;
use crate::client::{Access, with_client};
use crate::failure::Failure;
use crate::json::indented;
use crate::screen::Screen;

/// Call a function by its id, with JSON.
///
/// The answer is printed as JSON: on one line when it goes to a program, laid out on a terminal. A change is
/// answered when it is durable.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The function, for example session::append
    #[arg(required_unless_present_any = ["list", "stream"])]
    function: Option<String>,
    /// The request; `-` reads it from standard input [default: {}]
    #[arg(value_name = "JSON", requires = "function")]
    request: Option<String>,
    /// List the functions
    #[arg(long, conflicts_with_all = ["function", "stream", "schema"])]
    list: bool,
    /// Print the JSON Schema of the function's request and response
    #[arg(long, requires = "function", conflicts_with_all = ["request", "stream"])]
    schema: bool,
    /// Read calls from standard input, one JSON object a line, and answer each as it is done
    #[arg(long, conflicts_with = "function")]
    stream: bool,
    /// How many calls of a stream may be under way at a time; 1 runs them in order
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096), requires = "stream")]
    concurrency: u16,
}

const EXAMPLES: &str = r#"Examples:
  banyan call session::create '{"title":"Weather"}'
  banyan call session::append - < message.json
  banyan call session::append --schema
  banyan call --list
  echo '{"id":1,"function":"session::create","request":{}}' | banyan call --stream

A stream answers {"id":1,"ok":…} or {"id":1,"error":{"code":…,"message":…}}, in the order in which
calls are done. A call that depends on another is sent after the answer to that one has been read.
Whatever has been answered is durable. The stream ends with its input, or with SIGTERM or SIGINT, after
the calls already read; it exits with 0 whatever the answers were."#;

pub(crate) fn run(args: &CallArgs, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    let Some(id) = &args.function else {
        return match args.list {
            true => call_list::list(globals, screen),
            false => with_client(globals, Access::Create, |client| {
                call_stream::run(client, usize::from(args.concurrency))
            }),
        };
    };
    if args.schema {
        return call_list::schema(id, globals, screen);
    }
    let body = match args.request.as_deref() {
        Some("-") => standard_input()?,
        Some(request) => request.as_bytes().to_vec(),
        None => Vec::new(),
    };
    with_client(globals, access(id), |client| {
        let answer = client.call(id, &body).map_err(|failure| with_schema(failure, id))?;
        print(&answer, globals, screen)?;
        // An answer counts when it is out, and closing can take a while.
        screen.flush()
    })
}

/// Prints JSON: laid out for people, on one line for programs.
pub(super) fn print(answer: &str, globals: &Globals, screen: &mut Screen) -> Result<(), Failure> {
    match screen.is_terminal() && !globals.json {
        true => screen.line(&indented(answer)),
        false => screen.line(answer),
    }
}

fn access(id: &str) -> Access {
    match functions().iter().find(|function| function.id == id).map(|function| function.effect) {
        Some(Effect::Writes) => Access::Create,
        Some(Effect::Reads) | None => Access::Existing,
    }
}

fn with_schema(failure: Failure, id: &str) -> Failure {
    match failure.refusal().map(|refusal| refusal.code.as_str()) {
        Some("session/invalid_request" | "session/empty_batch" | "session/details_not_supported") => {
            failure.next(format!("banyan call {id} --schema"))
        }
        _ => failure,
    }
}

fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    match io::stdin().lock().read_to_end(&mut body) {
        Ok(_) => Ok(body),
        Err(error) => Err(Failure::usage(format!("standard input could not be read: {error}"))),
    }
}
