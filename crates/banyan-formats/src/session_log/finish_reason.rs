//! Why a model stopped, in the words of a log.

use banyan_model::StopReason;

/// The word for it.
pub(super) fn word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::End => "end",
        StopReason::Length => "length",
        StopReason::FunctionCall => "function_call",
        StopReason::Aborted => "aborted",
        StopReason::Error => "error",
    }
}

/// What a word means, in the spelling of different agents; none when it means nothing here.
pub(super) fn of_word(word: &str) -> Option<StopReason> {
    Some(match word.to_ascii_lowercase().as_str() {
        "end" | "stop" | "end_turn" | "completed" | "complete" | "done" => StopReason::End,
        "length" | "max_tokens" | "max_output_tokens" => StopReason::Length,
        "function_call" | "tool_use" | "tool_calls" | "tooluse" | "tool_call" => StopReason::FunctionCall,
        "aborted" | "cancelled" | "canceled" | "interrupted" => StopReason::Aborted,
        "error" | "failed" => StopReason::Error,
        _ => return None,
    })
}
