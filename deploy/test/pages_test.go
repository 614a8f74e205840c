// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^):]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	named   = regexp.MustCompile("(?:^|[\\s`(])((?:deploy|docs|conformance|examples)/[\\w./-]*\\w)")
)

// anchors are the headings of a page as GitHub makes links of them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}

// TestPagesPointToWhatIsThere: links of the pages about deployment, with their anchors, and paths of this repository that
// their text names. It catches a file that was moved and a heading that was renamed.
func TestPagesPointToWhatIsThere(t *testing.T) {
	const root = "../.."
	pages := []string{"docs/deploy.md", "docs/sizing.md", "docs/monitoring.md", "docs/runbook.md", "deploy/README.md"}
	runbook, err := filepath.Glob(filepath.Join(root, "docs/runbook/*.md"))
	if err != nil || len(runbook) == 0 {
		t.Fatalf("pages of the runbook: %v, %v", runbook, err)
	}
	for _, page := range runbook {
		pages = append(pages, strings.TrimPrefix(filepath.ToSlash(page), root+"/"))
	}
	for _, page := range pages {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(root, page)
			if file != "" {
				target = filepath.Join(root, filepath.Dir(page), file)
			}
			text, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !anchors(string(text))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", page, m[1])
			}
		}
		for _, m := range named.FindAllStringSubmatch(string(raw), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
}
