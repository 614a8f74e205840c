// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write testdata/releases.want")

// unpacked writes the two releases of an archive to a directory and returns what reads them.
func unpacked(t *testing.T, archive string) func(string) (release, error) {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func(version string) (release, error) {
		r := release{minor: 36, dirs: map[string]string{kubernetes: filepath.Join(dir, "from/kubernetes")}}
		side := "from"
		if version == "1.37.1" {
			side, r.minor = "to", 37
		}
		r.dirs[kubernetes] = filepath.Join(dir, side, "kubernetes")
		for _, m := range staging {
			r.dirs[m] = filepath.Join(dir, side, strings.TrimPrefix(m, "k8s.io/"))
		}
		return r, nil
	}
}

// TestNextReleaseFindsEachChange compares the output for two small releases with testdata/releases.want. It fails for a
// table that misses what was added, removed or changed in it, and for one that reports what stayed: comments, texts of
// logs, the order of lines in go.mod.
func TestNextReleaseFindsEachChange(t *testing.T) {
	var out, progress bytes.Buffer
	err := run([]string{"-from", "1.36.3", "-to", "1.37.1"}, &out, &progress, unpacked(t, "testdata/releases.txtar"))
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if *update {
		if err := os.WriteFile("testdata/releases.want", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/releases.want")
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// TestNextReleaseReportsWhatItCannotRead: a table of which the newer release shows nothing is an error, not an empty
// table, because the source may have taken another form. The other tables are printed. Fails for a comparison that
// takes an empty table for "no change".
func TestNextReleaseReportsWhatItCannotRead(t *testing.T) {
	source := unpacked(t, "testdata/releases.txtar")
	moved := func(version string) (release, error) {
		r, err := source(version)
		if version == "1.37.1" {
			os.RemoveAll(filepath.Join(r.dirs[kubernetes], "plugin"))
		}
		return r, err
	}
	var out, progress bytes.Buffer
	err := run([]string{"-from", "1.36.3", "-to", "1.37.1", "-o", "json"}, &out, &progress, moved)
	if err == nil || !strings.Contains(progress.String(), "access rights: nothing was found in the newer release") {
		t.Errorf("error %v, progress %q", err, &progress)
	}
	var tables []difference
	if err := json.Unmarshal(out.Bytes(), &tables); err != nil || len(tables) != 15 {
		t.Errorf("%d tables, want the 15 others: %v", len(tables), err)
	}
}

// TestNextReleaseRefusesWrongInput: errors state what is expected.
func TestNextReleaseRefusesWrongInput(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "-from and -to are needed",
		"-from 1.36.3 -to 1.37.1 -o xml":      "want json or yaml",
		"-from 1.36.3 -to 1.37.1 -tables (":   "-tables:",
		"-from 1.36.3 -to 1.37.1 -undeclared": "flag provided but not defined",
	} {
		err := run(strings.Fields(args), &bytes.Buffer{}, &bytes.Buffer{}, unpacked(t, "testdata/releases.txtar"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
	for _, version := range []string{"1.37", "2.0.0", "latest", "1.x.3"} {
		if _, err := download(version); err == nil {
			t.Errorf("version %q was accepted", version)
		}
	}
}
