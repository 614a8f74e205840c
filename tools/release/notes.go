// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// notes returns the section of CHANGELOG.md about this version, without its heading. A pre-release without a section
// has the notes of Unreleased.
func (r *release) notes() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	number := strings.TrimPrefix(r.version, "v")
	found := section(string(text), number)
	if found == "" && semver.Prerelease(r.version) != "" {
		found = section(string(text), "Unreleased")
	}
	if found == "" {
		return nil, fmt.Errorf("CHANGELOG.md has no section, or an empty one, with the heading "+
			"\"## [%s] - YYYY-MM-DD\"; give Unreleased that heading", number)
	}
	return []byte(r.links(found)), nil
}

// relativeLink matches a link to a file of the source tree: its text and its target.
var relativeLink = regexp.MustCompile(`\[([^\]]+)\]\(([^):]+)\)`)

// links has links to files of the source tree point to the source of this version, or removes them if that is
// published nowhere: beside the files of a release they would lead nowhere.
func (r *release) links(text string) string {
	if r.sourceURL == "" {
		return relativeLink.ReplaceAllString(text, "$1")
	}
	return relativeLink.ReplaceAllString(text, "[$1]("+strings.TrimSuffix(r.sourceURL, "/")+"/blob/"+r.version+"/$2)")
}

// section returns the text below a heading of the second level, up to the next one; empty if there is none.
func section(text, name string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			inside = strings.HasPrefix(heading, "["+name+"]")
			continue
		}
		if inside {
			b.WriteString(line)
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return ""
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// withDigests adds how to name what registries contain, and how to verify the files.
func (r *release) withDigests(notes []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# kumiki %s\n\n", r.version)
	b.Write(notes)
	b.WriteString("\n## Digests\n\n| artifact | file | digest |\n|---|---|---|\n")
	fmt.Fprintf(&b, "| image | `%s` | `%s` |\n", r.imageFile(), r.imageSum)
	fmt.Fprintf(&b, "| chart | `%s` | `%s` |\n", r.chartLayout(), r.chartSum)
	fmt.Fprintf(&b, "\nVerify the files with `sha256sum --check --ignore-missing %s`.\n", sumsFile)
	return b.Bytes()
}
