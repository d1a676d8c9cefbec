//! Plans of other tools: what `runner plan import` reads, and what it says about broken files.

use testkit::run_builder::RunBuilder;

use crate::RUNNER;
use crate::assert_proved;

const SPEC_KIT: &str = "# Tasks: Photo albums

**Input**: documents in `/specs/001-albums/`

## Format: `[ID] [P?] [Story] Description`

- **[P]**: may run in parallel
- **[Story]**: the user story, such as US1

## Phase 1: Setup

**Purpose**: a project that builds

- [x] T001 Create the project in src/
- [ ] T002 [P] Configure the linter in pyproject.toml

---

## Phase 3: User Story 1 - Browse albums (Priority: P1)

**Goal**: show the albums of a user

### Tests for User Story 1

- [ ] T010 [P] [US1] Contract test for GET /albums in tests/contract/test_albums.py

### Implementation for User Story 1

- [ ] T011 [P] [US1] Create the model in src/models/album.py
- [ ] T012 [US1] Implement the service in src/services/albums.py (depends on T011)

**Checkpoint**: albums can be browsed

## Dependencies

- Setup comes first
";

const OPEN_SPEC: &str = "## 1. Database

- [ ] 1.1 Add the column `otp_secret` to the users table
- [x] 1.2 Write the migration

## 2. Backend

- [ ] 2.1 Generate codes in `auth/otp.ts`
- [ ] 2.2 Verify codes at login
  - Reject a code that was used before
";

const KIRO: &str = "# Implementation Plan

- [ ] 1. Set up the project
  - Create folders for models and services
  - _Requirements: 1.1_

- [ ] 2. Implement the data model
- [x] 2.1 Create the types
  - Validate every field
  - _Requirements: 2.1, 3.3_

- [ ]* 2.2 Write property tests
  - _Requirements: 2.1_
";

const GITHUB: &str = r#"[
  {"body": "Steps:\r\n\r\n1. open it\r\n\r\n- [ ] it does not crash\r\n- [ ] a test covers it\r\n\r\nDepends on #41",
   "labels": [{"id": "LA_1", "name": "bug", "description": "Something is wrong", "color": "d73a4a"}],
   "number": 42, "state": "OPEN", "title": "Crash when the file is empty"},
  {"body": "", "labels": [], "number": 41, "state": "OPEN", "title": "Read the file in pieces"},
  {"body": null, "labels": [], "number": 40, "state": "CLOSED", "title": "Old"}
]"#;

const BEADS: &str = r#"{"id":"app-a1","title":"Import","description":"Read feeds.","status":"open","priority":1,"issue_type":"epic","created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-05T10:00:00Z"}
{"id":"app-b2","title":"Parse RSS","status":"open","priority":2,"issue_type":"task","acceptance_criteria":"- [ ] RSS 2.0 is read","created_at":"2026-01-05T10:00:00Z","dependencies":[{"issue_id":"app-b2","depends_on_id":"app-a1","type":"parent-child","created_at":"2026-01-05T10:00:00Z"}]}
{"id":"app-c3","title":"Fetch","status":"in_progress","priority":2,"issue_type":"task","dependencies":[{"issue_id":"app-c3","depends_on_id":"app-a1","type":"parent-child"},{"issue_id":"app-c3","depends_on_id":"app-b2","type":"blocks"}]}
{"id":"app-d4","title":"Done long ago","status":"closed","priority":0,"issue_type":"bug"}
"#;

#[test]
fn plans_of_other_tools_are_imported_and_exported() {
    for (name, text, added) in [
        ("specs/001-albums/tasks.md", SPEC_KIT, "format=spec-kit under=root nodes=8 skipped=1"),
        ("openspec/changes/add-2fa/tasks.md", OPEN_SPEC, "format=open-spec under=root nodes=5 skipped=1"),
        (".kiro/specs/store/tasks.md", KIRO, "format=kiro under=root nodes=2 skipped=2"),
        ("issues.json", GITHUB, "format=github under=root nodes=2 skipped=1"),
        (".beads/issues.jsonl", BEADS, "format=beads under=root nodes=3 skipped=1"),
    ] {
        let sandbox = RunBuilder::new(RUNNER).file(name, text).start();
        let imported = sandbox.runner(&["plan", "import", name]).ok().stdout;
        assert!(imported.contains(added), "{name}: {imported}");
        let exported = sandbox.runner(&["plan", "export"]).ok().stdout;
        let again = RunBuilder::new(RUNNER).start();
        std::fs::write(again.outside().join("PLAN.md"), &exported).unwrap();
        again.runner(&["plan", "import", "../PLAN.md", "--format", "markdown"]).ok();
        assert_eq!(again.runner(&["plan", "export"]).ok().stdout, exported, "{name}: the round trip");
        assert_proved(&sandbox);
    }
}

#[test]
fn broken_plans_of_other_tools_are_refused_with_their_lines() {
    let cut = |text: &str, at: &str| text.split_once(at).unwrap().0.to_owned();
    for (name, text, found) in [
        (
            "specs/001-albums/tasks.md",
            format!("{SPEC_KIT}\n```\nnever closed\n"),
            "the code block that starts here",
        ),
        (
            "openspec/changes/add-2fa/tasks.md",
            cut(OPEN_SPEC, "- [ ] 1.1"),
            "tasks.md:1: the file has no items",
        ),
        (".kiro/specs/store/tasks.md", format!("{KIRO}- [ ]\n"), "the item has no text"),
        ("issues.json", cut(GITHUB, "\"number\": 42"), "the file is not JSON"),
        (
            "issues.json",
            GITHUB.replace("\"number\": 41", "\"number\": \"41\""),
            "issues.json:5: issue 2 is invalid",
        ),
        ("issues.json", GITHUB.replace("\"body\": \"\"", "\"body\": \"Blocked by #42\""), "dependency cycle"),
        ("issues.json", "[]".to_owned(), "the list is empty"),
        (
            ".beads/issues.jsonl",
            BEADS.replace("\"id\":\"app-b2\",", ""),
            "issues.jsonl:2: the line is not an issue",
        ),
        (".beads/issues.jsonl", cut(BEADS, "\"priority\":2"), "issues.jsonl:2: the line is not an issue"),
        (
            ".beads/issues.jsonl",
            BEADS.replace("app-a1\",\"type\":\"parent-child\"}", "app-c3\",\"type\":\"parent-child\"}"),
            "its own ancestor",
        ),
    ] {
        let sandbox = RunBuilder::new(RUNNER).file(name, &text).start();
        let before = super::plan::state(&sandbox);
        let refused = sandbox.runner(&["plan", "import", name]).refused(2);
        assert!(refused.contains(found), "{name}: {refused}");
        assert_eq!(super::plan::state(&sandbox), before, "{name}");
    }
}
