# What a model answers, as its provider streams it.
mkdir -p "$FILES/agent/v1"
said() {
    printf 'event: %s\ndata: {"type": "%s", %s}\n\n' "$1" "$1" "$2"
}
usage='"usage": {"input_tokens": 1, "output_tokens": 1}'
message='"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []'
{
    said message_start "\"message\": {$message, \"stop_reason\": null, $usage}"
    said content_block_start '"index": 0, "content_block": {"type": "text", "text": ""}'
    said content_block_delta '"index": 0, "delta": {"type": "text_delta", "text": "42"}'
    said content_block_stop '"index": 0'
    said message_delta "\"delta\": {\"stop_reason\": \"end_turn\"}, $usage"
    said message_stop '"index": 0'
} > "$FILES/agent/v1/messages"
