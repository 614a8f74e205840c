// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
)

// documented are the methods of a table of docs/plugins.md: method -> what the page says of it.
func documented(t *testing.T, heading string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), heading+"\n")
	if !found {
		t.Fatalf("docs/plugins.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	methods := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.Contains(cells[1], "---") || strings.TrimSpace(cells[1]) == "method" {
			continue
		}
		for _, name := range strings.Split(cells[1], ",") {
			name = strings.TrimSpace(name)
			if methods[name] != "" {
				t.Errorf("docs/plugins.md has method %s twice", name)
			}
			methods[name] = strings.TrimSpace(cells[2])
		}
	}
	return methods
}

// TestHandleIsDocumented: docs/plugins.md says of each method of Handle and of what it returns whether it is the same as
// upstream's, different or absent. A method that it calls absent returns nothing.
func TestHandleIsDocumented(t *testing.T) {
	page := documented(t, "## Methods of Handle")
	h := reflect.ValueOf(&handle{NewHost(Env{}).Profile("p")})
	for _, of := range []reflect.Type{reflect.TypeFor[fwk.Handle](), reflect.TypeFor[fwk.SharedLister]()} {
		receiver := h
		if of != reflect.TypeFor[fwk.Handle]() {
			receiver = reflect.ValueOf(h.Interface().(fwk.Handle).SnapshotSharedLister())
		}
		for m := range of.NumMethod() {
			name := of.Method(m).Name
			says := page[name]
			delete(page, name)
			if !slices.Contains([]string{"same", "different", "absent"}, says) {
				t.Errorf("docs/plugins.md says %q of %s.%s, and not same, different or absent", says, of.Name(), name)
			}
			method := receiver.MethodByName(name)
			if says != "absent" || method.Type().NumIn() > 0 {
				continue
			}
			if got := method.Call(nil)[0]; !got.IsNil() {
				t.Errorf("docs/plugins.md says that %s.%s is absent, and it returns %v", of.Name(), name, got)
			}
		}
	}
	for name := range page {
		t.Errorf("docs/plugins.md documents %s, which Handle does not have", name)
	}
}
