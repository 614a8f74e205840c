// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
)

// source is a program that says under which name and with what it was started.
const source = `package main

import (
	"os"
	"strings"
)

func main() { os.Stdout.WriteString(strings.Join(os.Args, " ")) }
`

// architectures of the images; that of this machine is among them on all that Go programmers use.
var architectures = []string{"amd64", "arm64"}

// tiny builds the program for each architecture, as make image builds kumiki.
func tiny(t *testing.T) []binary {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"main.go": source, "go.mod": "module example/tiny\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var all []binary
	for _, arch := range architectures {
		b := binary{Platform: runtime.GOOS + "/" + arch, File: filepath.Join(dir, arch)}
		c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", b.File, ".")
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch, "GOWORK=off")
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("building for %s: %v\n%s", b.Platform, err, text)
		}
		all = append(all, b)
	}
	return all
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// packed builds images and returns their directory.
func packed(t *testing.T, binaries []binary) string {
	t.Helper()
	dir := t.TempDir()
	w := wanted{Name: "registry.example/team/kumiki", Version: "v1", Revision: "0123abcd", Created: noon, Licence: "../../LICENSE", Binaries: binaries}
	if _, err := build(w, dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dir
}

func contents(t *testing.T, dir string) pack.Files {
	t.Helper()
	all := pack.Files{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestTheSameBinariesGiveTheSameBytes: whatever their paths, times and order on the command line. It catches a time of
// the clock in a tar header (tarOf.add without ModTime of the commit, or time.Now there), the path of a binary in the
// bill of materials, and platforms in the order of the flags.
func TestTheSameBinariesGiveTheSameBytes(t *testing.T) {
	first := tiny(t)
	var second []binary
	for _, b := range first {
		content, err := os.ReadFile(b.File)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(elsewhere, content, 0o600); err != nil {
			t.Fatal(err)
		}
		second = append(second, binary{b.Platform, elsewhere})
	}
	slices.Reverse(second)
	a, b := contents(t, packed(t, first)), contents(t, packed(t, second))
	if len(a) != 1+2*len(architectures) {
		t.Errorf("%d files, want one layout, and an image and a bill for each platform: %v", len(a), slices.Sorted(maps.Keys(a)))
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s: %d bytes, then %d others", name, len(a[name]), len(b[name]))
		}
	}
}

// TestTheImageRuns: the layout is read back and the binary of this machine is run out of it. It catches a layer whose
// binary may not be executed (mode 0644 in rootFiles), and an entry point that is not in the layer.
func TestTheImageRuns(t *testing.T) {
	layout := filepath.Join(packed(t, tiny(t)), "kumiki.oci.tar")
	var out, progress bytes.Buffer
	if err := run([]string{"check", layout, "version", "-o", "json"}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "/kumiki version -o json") {
		t.Errorf("the program said %q", out.String())
	}
	for _, arch := range architectures {
		if !strings.Contains(progress.String(), runtime.GOOS+"/"+arch+": sha256:") {
			t.Errorf("nothing about %s in %q", arch, progress.String())
		}
	}
}

// images reads the images of a layout by platform.
func images(t *testing.T, layout string) map[string]*unpacked {
	t.Helper()
	list, err := readImages(layout)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unpacked{} // platform -> image
	for _, img := range list {
		all[img.platform.String()] = img
	}
	return all
}

// TestTheImageFitsBothUsers: a static pod of kubeadm runs it as root, a Deployment as another user. It catches a user in
// the configuration (kubeadm's scheduler.conf belongs to root and has mode 0600), files that others may write, a link
// under /usr/local/bin that leads nowhere once unpacked, a layer of one platform in the image of another, and an archive
// without the two empty blocks at its end, which Go reads and others refuse.
func TestTheImageFitsBothUsers(t *testing.T) {
	layout := filepath.Join(packed(t, tiny(t)), "kumiki.oci.tar")
	all := images(t, layout)
	if len(all) != len(architectures) {
		t.Fatalf("%d images", len(all))
	}
	for platform, img := range all {
		c := img.config
		if c.OS+"/"+c.Architecture != platform {
			t.Errorf("%s: the configuration says %s/%s", platform, c.OS, c.Architecture)
		}
		if c.Config.User != "" {
			t.Errorf("%s: the configuration sets user %q, kube-scheduler's sets none", platform, c.Config.User)
		}
		if c.Config.Labels["org.opencontainers.image.version"] != "v1" || c.Config.Labels["org.opencontainers.image.revision"] != "0123abcd" || !c.Created.Time.Equal(noon) {
			t.Errorf("%s: made at %s, labels %v", platform, c.Created, c.Config.Labels)
		}
		if end := img.layer[max(0, len(img.layer)-1024):]; !bytes.Equal(end, make([]byte, 1024)) {
			t.Errorf("%s: the layer ends in %q", platform, end)
		}
		entries := map[string]*tar.Header{} // path -> entry
		for r := tar.NewReader(bytes.NewReader(img.layer)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			entries[h.Name] = h
			if h.Uid != 0 || h.Gid != 0 || (h.Typeflag != tar.TypeSymlink && h.Mode&0o022 != 0 && h.Mode&0o1000 == 0) {
				t.Errorf("%s: %s is of %d:%d, mode %o", platform, h.Name, h.Uid, h.Gid, h.Mode)
			}
		}
		for _, name := range []string{"kube-scheduler", "kubectl-kumiki", "kumiki"} {
			at := "usr/local/bin/" + name
			if link := entries[at]; link == nil || path.Join(path.Dir(at), link.Linkname) != "kumiki" {
				t.Errorf("%s: %s is %+v", platform, at, link)
			}
		}
		for _, name := range []string{"kumiki", sbomPath, "usr/share/doc/kumiki/LICENSE"} {
			if entries[name] == nil || entries[name].Size == 0 {
				t.Errorf("%s: %s is %+v", platform, name, entries[name])
			}
		}
	}
}

// TestDockerLoadsTheSameImage: the file for docker load names the image that stands in the layout. It catches a tag
// that was lost, and two ways to build one image that drift apart.
func TestDockerLoadsTheSameImage(t *testing.T) {
	dir := packed(t, tiny(t))
	for platform, img := range images(t, filepath.Join(dir, "kumiki.oci.tar")) {
		entries := pack.Files{}
		f, err := os.Open(filepath.Join(dir, "kumiki-"+strings.ReplaceAll(platform, "/", "-")+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for r := tar.NewReader(f); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if entries[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		var manifest []struct {
			Config           string
			RepoTags, Layers []string
		}
		var config v1.ConfigFile
		if err := entries.Read("manifest.json", &manifest); err != nil {
			t.Fatal(err)
		}
		if err := entries.Read(manifest[0].Config, &config); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(manifest[0].RepoTags, []string{"registry.example/team/kumiki:v1"}) || len(entries[manifest[0].Layers[0]]) == 0 {
			t.Errorf("%s: %+v", platform, manifest)
		}
		if config.RootFS.DiffIDs[0] != img.config.RootFS.DiffIDs[0] || config.Config.User != img.config.Config.User {
			t.Errorf("%s: %+v, and in the layout %+v", platform, config.RootFS, img.config.RootFS)
		}
	}
}

// TestOnlyWhatStandsAloneIsPacked: the image holds no libraries and no second architecture. It catches make image without
// CGO_ENABLED=0, and binaries that were exchanged.
func TestOnlyWhatStandsAloneIsPacked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"C\"\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(dir, "linked")
	c := exec.Command("go", "build", "-o", linked, filepath.Join(dir, "main.go"))
	c.Env = append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off")
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := tiny(t)
	for _, tt := range []struct{ platform, file, want string }{
		{"linux/" + runtime.GOARCH, linked, "dynamic linker"},
		{"linux/amd64", all[1].File, "not for linux/amd64"},
		{"linux/s390x", all[0].File, "not made here"},
		{"linux/arm64", "../go.mod", "reading"},
	} {
		_, err := build(wanted{Name: "kumiki", Version: "v1", Binaries: []binary{{tt.platform, tt.file}}}, t.TempDir(), io.Discard)
		if runtime.GOOS == "linux" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s as %s: %v, want something about %q", tt.file, tt.platform, err, tt.want)
		}
	}
}

// TestABrokenLayoutIsRefused. It catches a check that does not look at the sums.
func TestABrokenLayoutIsRefused(t *testing.T) {
	layout := filepath.Join(packed(t, tiny(t)), "kumiki.oci.tar")
	content, err := os.ReadFile(layout)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte(`"Entrypoint":["/kumiki"]`))
	if at < 0 {
		t.Fatal("the configuration is not where this test looks for it")
	}
	content[at+len(`"Entrypoint":["/k`)] = 'U'
	if err := os.WriteFile(layout, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"check", layout}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "has the sum") {
		t.Errorf("check says %v", err)
	}
}

// TestWrongCommandLines checks that a wrong command line is an error, and that nothing is written.
func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"": "build, check or unpack", "unpack x": "a directory", "push x": "no command", "check": "wants the file", "build": "at least one", "build --binary x": "PLATFORM=FILE",
		"build --binary linux/amd64=missing --out " + t.TempDir(): "missing",
	} {
		if err := run(strings.Fields(line), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("image %s: %v, want something about %q", line, err, want)
		}
	}
}
