// SPDX-License-Identifier: Apache-2.0

package build

import "strings"

// Line is one line that go build -v writes.
type Line struct {
	// Package is the import path of a package whose compilation begins.
	Package string
	// Module is the module whose download begins.
	Module string
	// Complaint is any other line, such as an error of the compiler.
	Complaint string
}

// ParseLine reads a line of go build -v.
func ParseLine(line string) Line {
	const downloading, added = "go: downloading ", "go: added "
	switch {
	case strings.HasPrefix(line, downloading):
		return Line{Module: strings.TrimPrefix(line, downloading)}
	case line == "" || strings.HasPrefix(line, added):
		return Line{}
	case strings.ContainsAny(line, " \t#:"): // an import path has none of these
		return Line{Complaint: line}
	}
	return Line{Package: line}
}

// Sums returns the modules whose source go.sum lists, as "path version".
func Sums(goSum string) (modules []string) {
	for line := range strings.Lines(goSum) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.HasSuffix(fields[1], "/go.mod") {
			modules = append(modules, fields[0]+" "+fields[1])
		}
	}
	return modules
}

// CacheName returns the directory of a module in the module cache, of "path version": capital letters are written as !
// and the small letter.
func CacheName(module string) string {
	path, version, _ := strings.Cut(module, " ")
	var name strings.Builder
	for _, r := range path + "@" + version {
		if 'A' <= r && r <= 'Z' {
			name.WriteByte('!')
			r += 'a' - 'A'
		}
		name.WriteRune(r)
	}
	return name.String()
}
