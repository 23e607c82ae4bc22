//! Repositories below the folder of files, by `git http-backend`.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};

use super::answer::{Answer, text, whole};
use super::pages::Asked;
use crate::internet::head::invalid;

pub(super) async fn answer(asked: &Asked, files: &Path) -> Answer {
    let command = command(asked, files);
    let body = asked.body.clone();
    let ran = tokio::task::spawn_blocking(move || run(command, &body)).await;
    let printed = ran.map_err(io::Error::other).flatten();
    match printed.and_then(|printed| page(&printed)) {
        Ok(page) => page,
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// With what RFC 3875 tells such a program.
fn command(asked: &Asked, files: &Path) -> Command {
    let uri = &asked.parts.uri;
    let path = uri.path().strip_prefix("/git").unwrap_or_default();
    let header = |name: &str| {
        let value = asked.parts.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", files)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", asked.parts.method.as_str())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", asked.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "test")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn run(mut command: Command, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(body)));
        Ok(child.wait_with_output()?.stdout)
    })
}

fn page(printed: &[u8]) -> io::Result<Answer> {
    let end = printed.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or_else(|| invalid("no head"))?;
    let body = Bytes::copy_from_slice(&printed[end + 4..]);
    let mut page = whole(StatusCode::OK, "text/plain", body);
    for line in String::from_utf8_lossy(&printed[..end]).split("\r\n") {
        let (name, value) = line.split_once(": ").ok_or_else(|| invalid("no header"))?;
        if name == "Status" {
            let number = value.get(..3).and_then(|number| number.parse().ok());
            *page.status_mut() = number
                .and_then(|number| StatusCode::from_u16(number).ok())
                .ok_or_else(|| invalid("no status"))?;
            continue;
        }
        let name = HeaderName::try_from(name).map_err(io::Error::other)?;
        let value = HeaderValue::try_from(value).map_err(io::Error::other)?;
        page.headers_mut().insert(name, value);
    }
    Ok(page)
}
