// SPDX-License-Identifier: Apache-2.0

package learntest

import (
	"regexp"
	"strings"
)

// masks are what may differ from run to run, with what is put in its place.
var masks = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "TIME"},
	// A duration ends in seconds or milliseconds. 100m is a tenth of a core, and 5m five minutes: both must agree.
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b`), "DURATION"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`\bevent \d+ at\b`), "event NUMBER at"},
	{regexp.MustCompile(`\b\d+ (events|effects)\b`), "NUMBER $1"},
	{regexp.MustCompile(`\s+`), " "},
}

// Mask takes out of a line what may differ from run to run.
func Mask(line string) string {
	for _, m := range masks {
		line = m.what.ReplaceAllString(line, m.as)
	}
	return strings.TrimSpace(line)
}

// anything stands for any text.
const anything = "…"

// SameLine reports whether a line is as shown.
func SameLine(shown, line string) bool {
	parts := strings.Split(Mask(shown), anything)
	line = Mask(line)
	if len(parts) == 1 {
		return parts[0] == line
	}
	line, ok := strings.CutPrefix(line, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(line, part)
		if !found {
			return false
		}
		line = after
	}
	return strings.HasSuffix(line, last)
}

// Match looks for what is shown at the start of lines and returns how many lines it takes: the fewest, since … takes as
// few as it can. It is -1 when they do not match.
func Match(shown, lines []string) int {
	if len(shown) == 0 {
		return 0
	}
	if shown[0] == anything {
		for skip := 0; skip <= len(lines); skip++ {
			if n := Match(shown[1:], lines[skip:]); n >= 0 {
				return skip + n
			}
		}
		return -1
	}
	if len(lines) == 0 || !SameLine(shown[0], lines[0]) {
		return -1
	}
	if n := Match(shown[1:], lines[1:]); n >= 0 {
		return n + 1
	}
	return -1
}

// MatchAll reports whether the lines match what is shown to their end: nothing may follow.
func MatchAll(shown, lines []string) bool {
	if len(shown) == 0 {
		return len(lines) == 0
	}
	if shown[0] == anything {
		return MatchAll(shown[1:], lines) || len(lines) > 0 && MatchAll(shown, lines[1:])
	}
	return len(lines) > 0 && SameLine(shown[0], lines[0]) && MatchAll(shown[1:], lines[1:])
}

// Lines splits output, without the empty lines at its end.
func Lines(output string) []string {
	output = strings.TrimRight(output, "\n")
	if output == "" {
		return nil
	}
	return strings.Split(output, "\n")
}
