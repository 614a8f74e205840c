// SPDX-License-Identifier: Apache-2.0

package spdx

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// Program returns the document of one Go program: every module that the linker put into it, according to the
// information that the Go linker left there, and the standard library. name is the file's name in the artifact.
func Program(a About, file, name string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("build information of %s: %w", file, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	doc := a.document(content)
	program := fileOf("SPDXRef-File-"+notInID.ReplaceAllString(name, "-"), name, "BINARY", content)
	doc.Files = []File{program}
	main := packageOf(&info.Main)
	main.Version, main.License, main.Source = a.Version, apache, a.source()
	main.Refs = []Ref{purl(main.Name, a.Version)}
	library := packageOf(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	library.License = "BSD-3-Clause"
	doc.Packages = append(doc.Packages, main, library)
	doc.Relationships = append(doc.Relationships,
		Relationship{Self, "DESCRIBES", main.ID}, Relationship{program.ID, "GENERATED_FROM", main.ID},
		Relationship{main.ID, "DEPENDS_ON", library.ID})
	for _, m := range info.Deps {
		p := packageOf(m)
		if p.Name == modulePath || strings.HasPrefix(p.Name, modulePath+"/") { // a nested module, by its directory
			p.Version, p.License, p.Source, p.Refs = a.Version, apache, a.source(), []Ref{purl(p.Name, a.Version)}
		}
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, Relationship{main.ID, "DEPENDS_ON", p.ID})
	}
	return encode(doc)
}

// packageOf describes one module; a replaced one is what it was replaced by. The sum is that of go.sum: a SHA-256 over
// the names and SHA-256 sums of the module's files. It is not the sum of an archive, as the text beside it says.
func packageOf(m *debug.Module) Package {
	replaced := ""
	if m.Replace != nil {
		replaced = fmt.Sprintf("; replaces %s %s", m.Path, m.Version)
		m = m.Replace
	}
	p := Package{
		ID: "SPDXRef-Package-" + notInID.ReplaceAllString(m.Path+"-"+m.Version, "-"), Name: m.Path, Version: m.Version,
		Location: unsaid, License: unsaid, Concluded: unsaid, Copyright: unsaid, Refs: []Ref{purl(m.Path, m.Version)},
	}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		p.Source = "go.sum: " + m.Sum + replaced
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			p.Checksums = []Checksum{{"SHA256", hex.EncodeToString(raw)}}
		}
	}
	return p
}

// purl returns the name under which databases of vulnerabilities know a module.
func purl(module, version string) Ref {
	return Ref{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module + "@" + version}
}
