// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that are used (spdx.github.io/spdx-spec/v2.3, schemas/spdx-schema.json).
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Files         []spdxFile         `json:"files"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Version       string         `json:"versionInfo"`
		Location      string         `json:"downloadLocation"`
		FilesAnalyzed bool           `json:"filesAnalyzed"`
		License       string         `json:"licenseDeclared"`
		Concluded     string         `json:"licenseConcluded"`
		Copyright     string         `json:"copyrightText"`
		Source        string         `json:"sourceInfo,omitempty"`
		Checksums     []spdxChecksum `json:"checksums,omitempty"`
		Refs          []spdxRef      `json:"externalRefs"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxFile struct {
		ID        string         `json:"SPDXID"`
		Name      string         `json:"fileName"`
		Types     []string       `json:"fileTypes"`
		Checksums []spdxChecksum `json:"checksums"`
		Concluded string         `json:"licenseConcluded"`
		Copyright string         `json:"copyrightText"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	unsaid     = "NOASSERTION"
	spdxSelf   = "SPDXRef-DOCUMENT"
	spdxBinary = "SPDXRef-File-kumiki"
)

// billOfMaterials is the SPDX document of one binary: every module that the linker put into it, by the information that
// the Go linker left there, and the standard library.
func billOfMaterials(w wanted, b binary) ([]byte, error) {
	info, err := buildinfo.ReadFile(b.File)
	if err != nil {
		return nil, fmt.Errorf("build information of %s: %w", b.File, err)
	}
	content, err := os.ReadFile(b.File)
	if err != nil {
		return nil, err
	}
	one, two := sha1.Sum(content), sha256.Sum256(content)
	doc := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: spdxSelf,
		Name:      "kumiki " + w.Version + " " + b.Platform,
		Namespace: "https://github.com/kumiki-scheduler/kumiki/spdx/" + hex.EncodeToString(two[:]),
		Creation:  spdxCreation{w.Created.Format(time.RFC3339), []string{"Tool: kumiki-tools-image"}},
		Files: []spdxFile{{ID: spdxBinary, Name: "./kumiki", Types: []string{"BINARY"}, Concluded: unsaid, Copyright: unsaid,
			Checksums: []spdxChecksum{{"SHA1", hex.EncodeToString(one[:])}, {"SHA256", hex.EncodeToString(two[:])}}}},
	}
	main := packageOf(&info.Main)
	main.Version, main.License, main.Source = w.Version, "Apache-2.0", "commit "+w.Revision
	main.Refs = []spdxRef{purl(main.Name, w.Version)}
	library := packageOf(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")})
	library.License = "BSD-3-Clause"
	doc.Packages = append(doc.Packages, main, library)
	doc.Relationships = append(doc.Relationships,
		spdxRelationship{spdxSelf, "DESCRIBES", main.ID}, spdxRelationship{spdxBinary, "GENERATED_FROM", main.ID},
		spdxRelationship{main.ID, "DEPENDS_ON", library.ID})
	for _, m := range info.Deps {
		p := packageOf(m)
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, spdxRelationship{main.ID, "DEPENDS_ON", p.ID})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(doc)
	return out.Bytes(), err
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// packageOf describes one module; a replaced one is what it was replaced by. The sum is that of go.sum: a SHA-256 over
// the names and SHA-256 sums of the module's files, so it is no sum of an archive, which the text beside it says.
func packageOf(m *debug.Module) spdxPackage {
	replaced := ""
	if m.Replace != nil {
		replaced = fmt.Sprintf("; in the place of %s %s", m.Path, m.Version)
		m = m.Replace
	}
	p := spdxPackage{
		ID: "SPDXRef-Package-" + notInID.ReplaceAllString(m.Path+"-"+m.Version, "-"), Name: m.Path, Version: m.Version,
		Location: unsaid, License: unsaid, Concluded: unsaid, Copyright: unsaid, Refs: []spdxRef{purl(m.Path, m.Version)},
	}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		p.Source = "go.sum: " + m.Sum + replaced
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			p.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(raw)}}
		}
	}
	return p
}

// purl is the name under which databases of weaknesses know a module.
func purl(module, version string) spdxRef {
	return spdxRef{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module + "@" + version}
}
