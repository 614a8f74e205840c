// SPDX-License-Identifier: Apache-2.0

package spdx

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestTheBillNamesEveryModule describes a program of this module, whose modules and sums are known from go.sum. It catches a bill without sums, without the standard library, or with an id twice, which SPDX refuses.
func TestTheBillNamesEveryModule(t *testing.T) {
	self := filepath.Join(t.TempDir(), "image")
	c := exec.Command("go", "build", "-buildvcs=false", "-o", self, "../image")
	c.Env = append(os.Environ(), "GOWORK=off")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	raw, err := Program(About{Name: "image", Version: "v1", Revision: "0123abcd", Created: noon}, self, "image")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var doc Document
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	byName := map[string]Package{} // module -> package
	ids := map[string]bool{Self: true, "SPDXRef-File-image": true}
	for _, p := range doc.Packages {
		byName[p.Name] = p
		if ids[p.ID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("id %q is there twice, or not one", p.ID)
		}
		ids[p.ID] = true
		if p.Refs[0].Locator != "pkg:golang/"+p.Name+"@"+p.Version {
			t.Errorf("%s %s has the purl %s", p.Name, p.Version, p.Refs[0].Locator)
		}
		sum, has := strings.CutPrefix(p.Source, "go.sum: ")
		if has != (len(p.Checksums) == 1) || (has && !strings.Contains(string(sums), p.Name+" "+p.Version+" "+sum+"\n")) {
			t.Errorf("%s %s: %q, %v", p.Name, p.Version, p.Source, p.Checksums)
		}
	}
	if p := byName["github.com/google/go-containerregistry"]; len(p.Checksums) != 1 {
		t.Errorf("a module that is in: %+v", p)
	}
	if p := byName["stdlib"]; "go"+p.Version != runtime.Version() {
		t.Errorf("standard library: %+v, this is %s", p, runtime.Version())
	}
	if p := byName["github.com/kumiki-scheduler/kumiki/tools"]; p.Version != "v1" || p.Source != "commit 0123abcd" {
		t.Errorf("itself: %+v", p)
	}
	for _, r := range doc.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%+v is about something that is not there", r)
		}
	}
	if len(doc.Relationships) != len(doc.Packages)+1 {
		t.Errorf("%d relationships of %d packages", len(doc.Relationships), len(doc.Packages))
	}
}

// TestTheFilesOfAChart: each file is in the document once, with its sum, whatever the order in which they are given. It
// catches ids by the order of the arguments, which make a second build differ.
func TestTheFilesOfAChart(t *testing.T) {
	about := About{Name: "chart", Version: "v1", Created: noon}
	one, two := Content{"b", []byte("second")}, Content{"a", []byte("first")}
	first, err := Files(about, []byte("whole"), []Content{one, two})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Files(about, []byte("whole"), []Content{two, one})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("another order gives another document, %v:\n%s\n%s", err, first, second)
	}
	var doc Document
	if err := json.Unmarshal(first, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Files) != 2 || doc.Files[0].Name != "./a" || doc.Files[0].Checksums[1].Value != "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e" {
		t.Errorf("files: %+v", doc.Files)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(doc.Namespace) {
		t.Errorf("the namespace is %s", doc.Namespace)
	}
}
