// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fault is one patch file.
type Fault struct {
	Dir        string // of the package that it changes, relative to the root of the repository
	Name       string
	Breaks     string
	DetectedBy []Test
	Checks     int         // random cases of each property test, 0 for the default of the test
	Files      []FilePatch // in the order of the patch
}

// ID is what KUMIKI_FAULT is set to.
func (f Fault) ID() string { return f.Dir + "/" + f.Name }

// Test names a test function or one of its subtests.
type Test struct {
	Dir  string // of the package, relative to the root of the repository
	Name string // TestName or TestName/subtest
}

// FilePatch is what a patch changes in one file.
type FilePatch struct {
	Name  string // of the file within its package
	Hunks []Hunk
}

// Hunk replaces consecutive lines by others.
type Hunk struct {
	Line     int // where Old is expected, from 1
	Old, New []string

	trimmed int // lines of context dropped at each end, because they differ from the text
}

// Load reads the faults of the package in root/dir, sorted by name. A package without faults has none.
func Load(root, dir string) ([]Fault, error) {
	paths, err := filepath.Glob(filepath.Join(root, dir, "testdata", "faults", "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var out []Fault
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parse(dir, string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".patch"); f.Name != want {
			return nil, fmt.Errorf("%s: the fault is called %q, not %q as its file", path, f.Name, want)
		}
		out = append(out, f)
	}
	return out, nil
}

// LoadAll reads the faults of all packages below root, in the order of their directories.
func LoadAll(root string) ([]Fault, error) {
	dirs := map[string]bool{} // directory of a package -> true
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".patch") && strings.HasSuffix(filepath.Dir(path), filepath.Join("testdata", "faults")):
			dir, err := filepath.Rel(root, filepath.Dir(filepath.Dir(filepath.Dir(path))))
			if err != nil {
				return err
			}
			dirs[filepath.ToSlash(dir)] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []Fault
	for _, dir := range sortedKeys(dirs) {
		faults, err := Load(root, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, faults...)
	}
	return out, nil
}

var (
	faultName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)
	hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`)
)

// parse reads one patch file.
func parse(dir, text string) (Fault, error) {
	f := Fault{Dir: dir}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	at := 0
	for ; at < len(lines) && !strings.HasPrefix(lines[at], "--- "); at++ {
		key, value, _ := strings.Cut(lines[at], ": ")
		switch {
		case key == "Fault":
			f.Name = value
		case key == "Breaks":
			f.Breaks = value
		case key == "Detected by":
			f.DetectedBy = parseTests(dir, value)
		case key == "Checks":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return f, fmt.Errorf("line %d: want a positive number of checks: %q", at+1, value)
			}
			f.Checks = n
		case lines[at] != "":
			return f, fmt.Errorf("line %d: want Fault, Breaks, Detected by, Checks or a diff: %q", at+1, lines[at])
		}
	}
	var err error
	f.Files, err = parseDiff(lines[at:])
	switch {
	case err != nil:
		return f, err
	case !faultName.MatchString(f.Name):
		return f, fmt.Errorf("%q is no name of a fault", f.Name)
	case f.Breaks == "":
		return f, errors.New("does not say what it breaks")
	case len(f.DetectedBy) == 0:
		return f, errors.New("does not say which test detects it")
	case len(f.Files) == 0:
		return f, errors.New("changes nothing")
	}
	return f, nil
}

// parseTests reads the names of tests; those without a directory belong to dir.
func parseTests(dir, list string) []Test {
	var out []Test
	for _, name := range strings.Split(list, ",") {
		t := Test{Dir: dir, Name: strings.TrimSpace(name)}
		if d, n, other := strings.Cut(t.Name, ":"); other {
			t = Test{Dir: d, Name: n}
		}
		if t.Name != "" {
			out = append(out, t)
		}
	}
	return out
}

// parseDiff reads a unified diff of several files.
func parseDiff(lines []string) ([]FilePatch, error) {
	var out []FilePatch
	for i := 0; i < len(lines); {
		name, ok := strings.CutPrefix(lines[i], "--- ")
		if !ok || i+1 >= len(lines) || !strings.HasPrefix(lines[i+1], "+++ ") {
			return nil, fmt.Errorf("want --- FILE and +++ FILE: %q", lines[i])
		}
		p := FilePatch{Name: strings.TrimSpace(name)}
		for i += 2; i < len(lines) && strings.HasPrefix(lines[i], "@@"); {
			h, next, err := parseHunk(lines, i)
			if err != nil {
				return nil, err
			}
			p.Hunks, i = append(p.Hunks, h), next
		}
		out = append(out, p)
	}
	return out, nil
}

// parseHunk reads the hunk whose header is lines[at], and returns where it ends.
func parseHunk(lines []string, at int) (Hunk, int, error) {
	m := hunkHeader.FindStringSubmatch(lines[at])
	if m == nil {
		return Hunk{}, at, fmt.Errorf("want the header of a hunk: %q", lines[at])
	}
	count := func(s string) int {
		if s == "" {
			return 1
		}
		n, _ := strconv.Atoi(s) // the pattern has digits only
		return n
	}
	h := Hunk{Line: count(m[1])}
	old, changed := count(m[2]), count(m[3])
	for at++; len(h.Old) < old || len(h.New) < changed; at++ {
		line := ""
		if at < len(lines) {
			line = lines[at]
		} else {
			return h, at, fmt.Errorf("the hunk %q ends too early", m[0])
		}
		switch {
		case line == "":
			h.Old, h.New = append(h.Old, ""), append(h.New, "") // editors strip the blank of an empty context line
		case line[0] == ' ':
			h.Old, h.New = append(h.Old, line[1:]), append(h.New, line[1:])
		case line[0] == '-':
			h.Old = append(h.Old, line[1:])
		case line[0] == '+':
			h.New = append(h.New, line[1:])
		default:
			return h, at, fmt.Errorf("in the hunk %q: %q", m[0], line)
		}
	}
	return h, at, nil
}

// Apply returns text with the hunks applied. The lines of a hunk must occur in the text, except that up to two
// lines of context at its ends may have changed. Of several occurrences it takes the one nearest to the stated
// line.
func (p FilePatch) Apply(text string) (string, error) {
	lines := strings.Split(text, "\n")
	shift := 0
	for n, h := range p.Hunks {
		at := nearest(lines, h.Old, h.Line-1+shift)
		for at < 0 && h.trim() {
			at = nearest(lines, h.Old, h.Line-1+shift)
		}
		if at < 0 {
			return "", fmt.Errorf("hunk %d does not apply to %s: these lines are not there:\n%s", n+1, p.Name, strings.Join(h.Old, "\n"))
		}
		lines = slices.Concat(lines[:at], h.New, lines[at+len(h.Old):])
		shift += len(h.New) - len(h.Old)
	}
	return strings.Join(lines, "\n"), nil
}

// maxTrimmed is how many lines of context at each end of a hunk may differ from the text, as with patch(1).
const maxTrimmed = 2

// trim drops one more line of context at each end, and reports whether there was one to drop.
func (h *Hunk) trim() bool {
	if h.trimmed++; h.trimmed > maxTrimmed {
		return false
	}
	did := false
	if len(h.Old) > 1 && len(h.New) > 1 && h.Old[0] == h.New[0] {
		h.Old, h.New, h.Line, did = h.Old[1:], h.New[1:], h.Line+1, true
	}
	if o, n := len(h.Old)-1, len(h.New)-1; o > 0 && n > 0 && h.Old[o] == h.New[n] {
		h.Old, h.New, did = h.Old[:o], h.New[:n], true
	}
	return did
}

// nearest is where want occurs in lines, nearest to at; -1 if nowhere.
func nearest(lines, want []string, at int) int {
	best, distance := -1, 0
	for i := 0; i+len(want) <= len(lines); i++ {
		d := max(i-at, at-i)
		if (best < 0 || d < distance) && slices.Equal(lines[i:i+len(want)], want) {
			best, distance = i, d
		}
	}
	return best
}
