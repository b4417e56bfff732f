//! The README and docs/: short where they say so, their links lead somewhere, and what they name exists.

#![allow(clippy::case_sensitive_file_extension_comparisons)] // names of our own files

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    for name in [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "tests/cases.md",
    ] {
        pages.push(root().join(name));
    }
    pages
}

/// The files below a folder with one of some endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if endings
            .iter()
            .any(|ending| path.to_string_lossy().ends_with(ending))
        {
            found.push(path);
        }
    }
    found
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The anchor that a heading gets where pages are shown.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().replace(' ', "-")
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= 250, "{lines} lines");
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        let text = prose(&read(&page));
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.starts_with("http") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let headings = read(&target);
                let mut headings = headings.lines().filter(|line| line.starts_with('#'));
                let found = headings.any(|line| anchor(line) == heading);
                assert!(found, "{}: no heading {link}", page.display());
            }
        }
    }
}

/// Every test that a promise names.
#[test]
fn every_promise_has_its_test() {
    let suite = root().join("tests/suite");
    let promises = read(&root().join("docs/guarantees.md"));
    for row in promises.lines().filter(|line| line.contains(".rs`")) {
        let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let mut file = String::new();
        for name in names {
            if name.ends_with(".rs") {
                file = read(&suite.join(name));
            } else if name.contains('_') && !name.contains(' ') && name != "retry_after_ms" {
                assert!(file.contains(&format!("fn {name}(")), "no test {name}");
            }
        }
    }
}

/// Every report that a test stems from is in the table.
#[test]
fn every_case_is_in_the_table() {
    let table = read(&root().join("tests/cases.md"));
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .collect();
    for folder in ["src", "tests"] {
        for path in files(&root().join(folder), &[".rs", ".py"]) {
            let text = read(&path)
                .replace("\n    /// ", " ")
                .replace("\n/// ", " ");
            let mentions = text.split("Case").skip(1);
            for rest in mentions {
                let rest = rest.trim_start_matches('s').trim_start();
                let end = rest.find(|c: char| !(c.is_ascii_digit() || ", and".contains(c)));
                let numbers = &rest[..end.unwrap_or(rest.len())];
                for number in numbers.split(|c: char| !c.is_ascii_digit()) {
                    assert!(
                        number.is_empty() || listed.contains(number),
                        "{path:?}: case {number}"
                    );
                }
            }
        }
    }
}

/// The library's own words: the files that the crate doc maps exist.
#[test]
fn the_map_of_the_source_is_true() {
    let map = read(&root().join("src/lib.rs"));
    for part in map.split('`').skip(1).step_by(2) {
        if part.ends_with(".rs") || part.ends_with('/') {
            assert!(root().join("src").join(part).exists(), "src/{part}");
        }
    }
}
