// SPDX-License-Identifier: Apache-2.0

package spdx

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// The parts of SPDX 2.3 that are used (spdx.github.io/spdx-spec/v2.3, schemas/spdx-schema.json).
type (
	// Document is one bill of materials.
	Document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      Creation       `json:"creationInfo"`
		Packages      []Package      `json:"packages"`
		Files         []File         `json:"files"`
		Relationships []Relationship `json:"relationships"`
	}
	// Creation says when and with what the document was made.
	Creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	// Package is a module, or the artifact itself.
	Package struct {
		ID            string     `json:"SPDXID"`
		Name          string     `json:"name"`
		Version       string     `json:"versionInfo"`
		Location      string     `json:"downloadLocation"`
		FilesAnalyzed bool       `json:"filesAnalyzed"`
		License       string     `json:"licenseDeclared"`
		Concluded     string     `json:"licenseConcluded"`
		Copyright     string     `json:"copyrightText"`
		Source        string     `json:"sourceInfo,omitempty"`
		Checksums     []Checksum `json:"checksums,omitempty"`
		Refs          []Ref      `json:"externalRefs,omitempty"`
	}
	// Checksum is a sum in hexadecimal digits.
	Checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	// Ref names a package in another system.
	Ref struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	// File is a file of the artifact.
	File struct {
		ID        string     `json:"SPDXID"`
		Name      string     `json:"fileName"`
		Types     []string   `json:"fileTypes"`
		Checksums []Checksum `json:"checksums"`
		Concluded string     `json:"licenseConcluded"`
		Copyright string     `json:"copyrightText"`
	}
	// Relationship joins two elements by their ids.
	Relationship struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// Self is the id of every document.
const Self = "SPDXRef-DOCUMENT"

const (
	unsaid     = "NOASSERTION"
	apache     = "Apache-2.0"
	modulePath = "github.com/kumiki-scheduler/kumiki"
)

// About is what a document says of the release that the artifact belongs to.
type About struct {
	// Name is the artifact's.
	Name, Version string
	// Revision is the commit; empty if unknown.
	Revision string
	// Created is the time of the commit, so that a second build gives the same document.
	Created time.Time
}

// document begins the document of an artifact with the given content.
func (a About) document(content []byte) Document {
	return Document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: Self,
		Name: a.Name + " " + a.Version, Namespace: "urn:uuid:" + uuidOf(a.Name, content),
		Creation: Creation{a.Created.UTC().Format(time.RFC3339), []string{"Tool: kumiki-tools-spdx"}},
	}
}

// source is the line about the commit.
func (a About) source() string {
	if a.Revision == "" {
		return ""
	}
	return "commit " + a.Revision
}

// Content is a named part of an artifact.
type Content struct {
	Name string
	Data []byte
}

// Files returns the document of an artifact without programs, such as a chart: its files.
func Files(a About, whole []byte, parts []Content) ([]byte, error) {
	doc := a.document(whole)
	self := Package{
		ID: "SPDXRef-Package-" + notInID.ReplaceAllString(a.Name, "-"), Name: a.Name, Version: a.Version,
		Location: unsaid, License: apache, Concluded: unsaid, Copyright: unsaid, Source: a.source(),
		Checksums: []Checksum{sha256Of(whole)},
	}
	doc.Packages = []Package{self}
	doc.Relationships = []Relationship{{Self, "DESCRIBES", self.ID}}
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(x, y Content) int { return bytes.Compare([]byte(x.Name), []byte(y.Name)) })
	for n, p := range parts {
		f := fileOf(fmt.Sprintf("SPDXRef-File-%d", n+1), p.Name, "TEXT", p.Data)
		doc.Files = append(doc.Files, f)
		doc.Relationships = append(doc.Relationships, Relationship{self.ID, "CONTAINS", f.ID})
	}
	return encode(doc)
}

func fileOf(id, name, kind string, data []byte) File {
	one := sha1.Sum(data)
	return File{ID: id, Name: "./" + name, Types: []string{kind}, Concluded: unsaid, Copyright: unsaid,
		Checksums: []Checksum{{"SHA1", hex.EncodeToString(one[:])}, sha256Of(data)}}
}

func sha256Of(data []byte) Checksum {
	sum := sha256.Sum256(data)
	return Checksum{"SHA256", hex.EncodeToString(sum[:])}
}

// uuidOf returns a UUID of version 8 (RFC 9562) that depends on the name and the content alone. Two documents of one
// binary, which is in an archive and in an image, need two.
func uuidOf(name string, content []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", name)
	h.Write(content)
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func encode(doc Document) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return out.Bytes(), err
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
