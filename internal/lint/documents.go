// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
)

const (
	docsIndex  = "docs/README.md"
	designTree = "docs/design"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	designName   = regexp.MustCompile(`^docs/design/(\d{4})-[a-z0-9-]+\.md$`)
	designStatus = regexp.MustCompile(`(?m)^Status: (?:proposed|accepted|superseded by \d{4}|rejected), \d{1,2} [A-Z][a-z]+ \d{4}\.$`)
)

// Documents returns pages of docs that the index does not list, design notes without number, status or date, and links
// in documents to files or headings that do not exist.
func Documents(t *Tree) []Finding {
	var found []Finding
	pages := map[string]*File{} // path -> document
	dirs := map[string]bool{}   // path of a directory -> it holds a file
	files := map[string]bool{}  // path of a file -> it exists
	for _, f := range t.Files {
		files[f.Path] = true
		for dir := f.Dir(); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
		if strings.HasSuffix(f.Path, ".md") {
			pages[f.Path] = f
		}
	}
	listed := map[string]bool{} // path -> the index links to it
	if index := pages[docsIndex]; index != nil {
		for _, m := range markdownLink.FindAllStringSubmatch(index.Src, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			listed[path.Join("docs", target)] = true
		}
	}
	for _, f := range t.Files {
		if pages[f.Path] == nil {
			continue
		}
		if f.In("docs") && f.Path != docsIndex && !listed[f.Path] {
			found = append(found, Finding{f.Path, "is not in " + docsIndex, "a page that no index lists is found by accident; add it with one line"})
		}
		if f.In(designTree) {
			found = append(found, judgeDesignNote(f)...)
		}
		found = append(found, judgeLinks(f, pages, files, dirs)...)
	}
	return found
}

// judgeDesignNote returns what a design note lacks of docs/design/template.md.
func judgeDesignNote(f *File) []Finding {
	const why = "a reader must know whether a note still holds and from when it is; see docs/design/template.md"
	if f.Path == designTree+"/template.md" {
		return nil
	}
	var found []Finding
	m := designName.FindStringSubmatch(f.Path)
	if m == nil {
		return []Finding{{f.Path, "is not named NNNN-title.md", why}}
	}
	if !strings.HasPrefix(f.Src, "# "+m[1]+": ") {
		found = append(found, Finding{f.Path, "does not start with `# " + m[1] + ": `", why})
	}
	if !designStatus.MatchString(f.Src) {
		found = append(found, Finding{f.Path, "has no line `Status: accepted, 2 January 2006.`", why})
	}
	return found
}

// judgeLinks returns the relative links of a document that lead nowhere.
func judgeLinks(f *File, pages map[string]*File, files, dirs map[string]bool) []Finding {
	const why = "a link that leads nowhere costs each reader the search that the link was for"
	var found []Finding
	inFence := false
	for i, line := range strings.Split(f.Src, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
		}
		if inFence {
			continue
		}
		for _, m := range markdownLink.FindAllStringSubmatch(line, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := f.Path
			if target != "" {
				to = path.Join(f.Dir(), target)
			}
			where := fmt.Sprintf("%s:%d", f.Path, i+1)
			switch {
			case !files[to] && !dirs[to] && to != ".":
				found = append(found, Finding{where, "links to " + m[1] + ", which does not exist", why})
			case anchor != "" && pages[to] != nil && !headings(pages[to].Src)[anchor]:
				found = append(found, Finding{where, "links to " + m[1] + ", which has no such heading", why})
			}
		}
	}
	return found
}

var (
	namedPath  = regexp.MustCompile("`([a-z]+)/([A-Za-z0-9_./-]+)`")
	symbolSpan = regexp.MustCompile(`^(.*/[a-z]+)\.[A-Z]\w*$`)
	aVariable  = regexp.MustCompile(`\bN{1,4}\b|_N\b|NNNN|NAME|[A-Z]{4,}`)
)

// Paths returns the files, packages and symbols that documents name in code spans and that do not exist. Design notes
// and the changelog name what existed when they were written.
func Paths(t *Tree) []Finding {
	const why = "a reader looks for it; name what is there now"
	exists := map[string]bool{"": true} // path of a file or directory -> it exists
	top := map[string]bool{}            // directory at the root -> it exists
	for _, f := range t.Files {
		exists[f.Path] = true
		for dir := f.Dir(); dir != "."; dir = path.Dir(dir) {
			exists[dir] = true
		}
		if first, _, nested := strings.Cut(f.Path, "/"); nested {
			top[first] = true
		}
	}
	var found []Finding
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".md") || f.In(designTree) || f.Path == "CHANGELOG.md" {
			continue
		}
		for i, line := range strings.Split(f.Src, "\n") {
			for _, m := range namedPath.FindAllStringSubmatch(line, -1) {
				name := strings.TrimSuffix(strings.TrimSuffix(m[1]+"/"+m[2], "/..."), "/")
				if symbol := symbolSpan.FindStringSubmatch(name); symbol != nil {
					name = symbol[1]
				}
				if top[m[1]] && !exists[name] && !aVariable.MatchString(name) {
					where := fmt.Sprintf("%s:%d", f.Path, i+1)
					found = append(found, Finding{where, "names " + name + ", which does not exist", why})
				}
			}
		}
	}
	return found
}

// unimplementedPage is the only page with a list of what is missing.
const unimplementedPage = "docs/compatibility.md"

var notThereYet = regexp.MustCompile(`(?i)\bnot (?:yet )?(?:implemented|supported|built) yet\b|` +
	`\bnot yet (?:implemented|supported|built)\b`)

// Unimplemented returns pages that list what is not implemented yet, beside the one that does.
func Unimplemented(t *Tree) []Finding {
	const why = "lists of what is missing contradict each other; add it to " + unimplementedPage + " and link there"
	var found []Finding
	for _, f := range t.Files {
		if !strings.HasSuffix(f.Path, ".md") || f.Path == unimplementedPage || f.Path == "CHANGELOG.md" ||
			f.In(designTree) {
			continue
		}
		for i, line := range strings.Split(f.Src, "\n") {
			if m := notThereYet.FindString(markdownLink.ReplaceAllString(line, "")); m != "" {
				found = append(found, Finding{fmt.Sprintf("%s:%d", f.Path, i+1), fmt.Sprintf("says %q", m), why})
			}
		}
	}
	return found
}

var anchorElement = regexp.MustCompile(`<a id="([^"]+)">`)

// headings returns the anchors of a Markdown page: those of headings, as GitHub forms them, and those set by HTML.
func headings(src string) map[string]bool {
	anchors := map[string]bool{} // anchor -> exists
	inFence := false
	for line := range strings.SplitSeq(src, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
		}
		for _, m := range anchorElement.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if inFence || !isHeading || !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(title))
		for name, n := anchor, 1; ; n++ {
			if !anchors[name] {
				anchors[name] = true
				break
			}
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
	}
	return anchors
}
