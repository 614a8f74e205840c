// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kumiki-scheduler/kumiki/tools/spdx"
)

// tree is a small source tree with the form of this repository; the chart is the real one. Its programs print how they
// were started, and kumiki its version.
var tree = map[string]string{
	"go.mod":                   "module github.com/kumiki-scheduler/kumiki\n\ngo 1.26\n",
	"app/command/command.go":   "package command\n\nvar version = \"development\"\n\nfunc Version() string { return version }\n",
	"cmd/kumiki/main.go":       strings.Replace(program1, "WHAT", "os.Args[0] + \" \" + command.Version()", 1),
	"localcluster/go.mod":      "module github.com/kumiki-scheduler/kumiki/localcluster\n\ngo 1.26\n",
	"localcluster/main.go":     "package main\n\nfunc main() { println(\"localcluster\") }\n",
	"localcluster/ldflags.txt": "-s -w\n",
	"LICENSE":                  "the licence\n",
	"CHANGELOG.md":             "# Changelog\n\n## [Unreleased]\n\n- Next.\n\n## [0.2.0] - 2026-11-23\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-11-01\n\n- The first.\n",
}

const program1 = `package main

import (
	"os"

	"github.com/kumiki-scheduler/kumiki/app/command"
)

func main() { os.Stdout.WriteString(WHAT) }
`

// some are the platforms of tests.
const some = "linux/amd64,linux/arm64,darwin/arm64"

// imageTool builds tools/image once.
var imageTool = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "image")
	c := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../image")
	c.Env = append(os.Environ(), "GOWORK=off")
	text, err := c.CombinedOutput()
	if err != nil {
		err = errors.New(string(text))
	}
	return path, err
})

var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "kumiki-release-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// built writes a tree, builds a release of it with further flags, and returns its directory.
func built(t *testing.T, flags ...string) string {
	t.Helper()
	out, err := tryBuild(t, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryBuild(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	root := t.TempDir()
	for name, content := range tree {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(root, chartDir), os.DirFS("../../"+chartDir)); err != nil {
		t.Fatal(err)
	}
	image, err := imageTool()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(root, "out/release")
	args := append([]string{"build", "--version", "v0.2.0", "--revision", "0123abcd", "--created", "1763900000", "--image", image,
		"--source", root, "--out", out, "--platforms", some}, flags...)
	return out, run(context.Background(), args, io.Discard, io.Discard)
}

func read(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := files(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		if all[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestTheSameSourceGivesTheSameRelease builds in two directories, the second time with another environment. It catches
// paths in programs (a build without -trimpath), the present time in an archive, an order of a map in a file, and
// settings of the user that reach the compiler.
func TestTheSameSourceGivesTheSameRelease(t *testing.T) {
	first := read(t, built(t))
	t.Setenv("GOFLAGS", "-buildvcs=false -ldflags=-w")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Tokyo")
	second := read(t, built(t))
	if got, want := slices.Sorted(maps.Keys(second)), slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Fatalf("files %q, then %q", want, got)
	}
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s: %d bytes, then %d others", name, len(first[name]), len(second[name]))
		}
	}
}

// TestWhatAReleaseContains checks the list of files, that every archive and image has a bill of materials with a
// namespace of its own, and that archives contain the program, the licence and a README that names the program and
// links to no file beside it.
func TestWhatAReleaseContains(t *testing.T) {
	all := read(t, built(t))
	namespaces := map[string]string{} // namespace of a bill of materials -> its file
	for name, text := range all {
		var d spdx.Document
		if !strings.HasSuffix(name, ".spdx.json") {
			continue
		}
		if err := json.Unmarshal(text, &d); err != nil || namespaces[d.Namespace] != "" {
			t.Errorf("%s: %v, and %q has the same namespace", name, err, namespaces[d.Namespace])
		}
		namespaces[d.Namespace] = name
	}
	var want []string
	for _, program := range []string{"kumiki", "kumiki-localcluster"} {
		for _, platform := range []string{"darwin_arm64", "linux_amd64", "linux_arm64"} {
			base := program + "_v0.2.0_" + platform
			want = append(want, base+".tar.gz", base+".spdx.json")
			got := entries(t, all[base+".tar.gz"])
			if len(got) != 3 || got[program].mode != 0o755 || got["LICENSE"].mode != 0o644 ||
				!strings.HasPrefix(got["README.md"].text, "# "+program+" v0.2.0\n") || strings.Contains(got["README.md"].text, "](") {
				t.Errorf("%s contains %v", base, slices.Sorted(maps.Keys(got)))
			}
			bill(t, base, all[base+".spdx.json"])
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		name := "kumiki-image_v0.2.0_linux_" + arch + ".spdx.json"
		want = append(want, name)
		bill(t, name, all[name])
	}
	bill(t, "chart", all["kumiki-chart_v0.2.0.spdx.json"])
	want = append(want, "kumiki-image_v0.2.0.oci.tar", "kumiki-chart_v0.2.0.tgz", "kumiki-chart_v0.2.0.oci.tar", "kumiki-chart_v0.2.0.spdx.json",
		krewFile, notesFile, statement, sumsFile)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("files:\n%q, want\n%q", got, want)
	}
}

type entry struct {
	mode int64
	text string
}

// entries reads a tar.gz.
func entries(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]entry{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = entry{h.Mode, string(text)}
	}
}

// bill checks that a bill of materials is about this release.
func bill(t *testing.T, of string, text []byte) {
	t.Helper()
	var d spdx.Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Errorf("%s: %v", of, err)
		return
	}
	if d.Version != "SPDX-2.3" || len(d.Packages) == 0 || d.Packages[0].Version != "v0.2.0" || d.Packages[0].Source != "commit 0123abcd" || len(d.Files) == 0 {
		t.Errorf("%s: %+v", of, d)
	}
}

// TestTheProgramKnowsItsVersion runs the program out of its archive, as krew installs it. It catches a version that the
// linker did not set, and a manifest whose files are not in the archive.
func TestTheProgramKnowsItsVersion(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	all := read(t, built(t, "--platforms", "linux/amd64,"+platform, "--url", "https://releases.example/v0.2.0"))
	var p krewPlugin
	if err := yaml.Unmarshal(all[krewFile], &p); err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Spec.Platforms {
		if k.Selector.MatchLabels["os"]+"/"+k.Selector.MatchLabels["arch"] != platform {
			continue
		}
		archive, under := strings.CutPrefix(k.URI, "https://releases.example/v0.2.0/")
		if !under {
			t.Errorf("the address is %s", k.URI)
		}
		in := entries(t, all[archive])
		dir := t.TempDir()
		for _, f := range k.Files {
			e, is := in[f.From]
			if !is {
				t.Fatalf("%s is not in %s", f.From, archive)
			}
			to := filepath.Join(dir, f.To)
			if f.To == "." {
				to = filepath.Join(dir, f.From)
			}
			if err := os.WriteFile(to, []byte(e.text), os.FileMode(e.mode)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command(filepath.Join(dir, k.Bin)).Output()
		if err != nil || !strings.HasSuffix(string(out), "/kubectl-kumiki v0.2.0") {
			t.Errorf("%v: it prints %q", err, out)
		}
		return
	}
	t.Errorf("no entry for %s in\n%s", platform, all[krewFile])
}

// TestNotesComeFromTheChangelog checks which section is taken: that of the version, for a pre-release also Unreleased.
func TestNotesComeFromTheChangelog(t *testing.T) {
	notes := string(read(t, built(t, "--platforms", "linux/amd64"))[notesFile])
	if !strings.HasPrefix(notes, "# kumiki v0.2.0\n\n### Added\n\n- A thing.\n\n## Digests\n") || strings.Count(notes, "`sha256:") != 2 {
		t.Errorf("the notes are\n%s", notes)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(tree["CHANGELOG.md"]), 0o644); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"v0.1.0": "- The first.\n", "v0.3.0-rc.1": "- Next.\n", "v0.2.0-rc.1": "- Next.\n", "v0.3.0": ""} {
		r := release{source: dir, version: version}
		got, err := r.notes()
		if string(got) != want || (want == "") != (err != nil) {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

// TestLinksOfNotes checks that no link of the notes depends on files that lie beside CHANGELOG.md.
func TestLinksOfNotes(t *testing.T) {
	text := "- A thing ([its page](docs/a.md#part), [KEP](https://example.com/kep)).\n"
	for source, want := range map[string]string{
		"": "- A thing (its page, [KEP](https://example.com/kep)).\n",
		"https://example.com/kumiki/": "- A thing ([its page](https://example.com/kumiki/blob/v0.2.0/docs/a.md#part), " +
			"[KEP](https://example.com/kep)).\n",
	} {
		r := release{version: "v0.2.0", sourceURL: source}
		if got := r.links(text); got != want {
			t.Errorf("source %q: %q, want %q", source, got, want)
		}
	}
}

// TestWrongCommandLines checks that nothing is built from a request that is wrong.
func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                                      "build, sign, verify or push",
		"publish x":                             "build, sign, verify or push",
		"build":                                 "v1.2.3",
		"build --version 0.1.0":                 "v1.2.3",
		"build --version v0.1":                  "v1.2.3",
		"build --version v0.1.0 x":              "no arguments",
		"build --version v0.1.0 --url http://x": "https://",
		"build --version v0.1.0 --platforms darwin/arm64": "none of linux",
		"build --version v0.1.0 --platforms linux-arm64":  "os/architecture",
		"build --version v0.1.0 --source /does/not/exist": "CHANGELOG.md",
		"sign x":                  "--key",
		"verify":                  "directory",
		"verify /does/not/exist":  "no such file",
		"push x":                  "--image",
		"push --image x /nowhere": "not pushed",
	} {
		if err := run(context.Background(), strings.Fields(line), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("release %s: %v, want something about %q", line, err, want)
		}
	}
	out := built(t, "--platforms", "linux/amd64")
	if _, err := tryBuild(t, "--platforms", "linux/amd64", "--out", out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second build into one directory: %v", err)
	}
}
