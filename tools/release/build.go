// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
	"github.com/kumiki-scheduler/kumiki/tools/spdx"
)

// release is what is built.
type release struct {
	version, revision  string
	created            time.Time // of the commit; every time in the files is this one
	url, sourceURL     string
	builder            string
	repository         string // of the image
	source, out        string
	imageTool          string
	platforms          []string // os/architecture
	progress           io.Writer
	imageSum, chartSum string      // digests, set by build
	programs           []published // set by build
}

// program is a program that a release contains.
type program struct {
	name string
	// module is the directory of its Go module, pkg the package in it.
	module, pkg string
	// version is the variable that the linker sets; empty for none.
	version string
}

var programs = []program{
	{"kumiki", ".", "./cmd/kumiki", "github.com/kumiki-scheduler/kumiki/app/command.version"},
	{"kumiki-localcluster", "localcluster", ".", ""},
}

// published is the archive of a program for one platform.
type published struct {
	program  string
	platform string
	binary   string // path of the binary
	archive  string // name of the archive in the release
}

// build writes all files of the release. The order of the steps follows what needs what.
func (r *release) build(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	notes, err := r.notes()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.out); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty", r.out))
	}
	scratch, err := os.MkdirTemp("", "kumiki-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, platform := range r.platforms {
		for _, p := range programs {
			if err := r.archive(ctx, scratch, platform, p); err != nil {
				return err
			}
		}
	}
	if err := r.packImage(ctx, scratch); err != nil {
		return err
	}
	if err := r.packChart(); err != nil {
		return err
	}
	if err := r.writeKrew(); err != nil {
		return err
	}
	if err := r.write(notesFile, r.withDigests(notes)); err != nil {
		return err
	}
	if err := r.writeProvenance(); err != nil {
		return err
	}
	return writeSums(r.out)
}

var platformForm = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)

// check reports what is wrong with the request before anything is compiled.
func (r *release) check() error {
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("--version must have the form v1.2.3 or v1.2.3-rc.1, got %q", r.version)
	}
	if r.url != "" && !strings.HasPrefix(r.url, "https://") {
		return fmt.Errorf("--url must begin with https://, got %q", r.url)
	}
	linux := false
	for _, p := range r.platforms {
		if !platformForm.MatchString(p) {
			return fmt.Errorf("platform %q is not os/architecture", p)
		}
		linux = linux || strings.HasPrefix(p, "linux/")
	}
	if !linux {
		return errors.New("--platforms names none of linux, which the image needs")
	}
	return nil
}

// fixedEnv are settings of the go command that change what it builds; GOFLAGS has the default, since an empty value
// would let the user's configuration file count.
var fixedEnv = []string{"GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly"}

// goEnv returns the environment of a build.
func goEnv(platform string) []string {
	goos, goarch, _ := strings.Cut(platform, "/")
	return append(append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch), fixedEnv...)
}

// archive compiles a program and packs it with the licence and a README of its own.
func (r *release) archive(ctx context.Context, scratch, platform string, p program) error {
	fmt.Fprintf(r.progress, "%s for %s\n", p.name, platform)
	ldflags, err := os.ReadFile(filepath.Join(r.source, "localcluster", "ldflags.txt"))
	if err != nil {
		return err
	}
	link := strings.TrimSpace(string(ldflags))
	if p.version != "" {
		link += " -X " + p.version + "=" + r.version
	}
	binary, err := filepath.Abs(filepath.Join(scratch, strings.ReplaceAll(platform, "/", "-"), p.name))
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", binary, p.pkg)
	c.Dir, c.Env = filepath.Join(r.source, p.module), goEnv(platform)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s for %s: %w\n%s", p.name, platform, err, text)
	}
	base := r.base(p.name, platform)
	entries := []pack.Entry{
		{Name: p.name, Mode: 0o755}, {Name: "LICENSE", Mode: 0o644}, {Name: "README.md", Mode: 0o644},
	}
	for n, file := range []string{binary, filepath.Join(r.source, "LICENSE")} {
		if entries[n].Data, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	entries[2].Data = r.readme(p)
	var archive bytes.Buffer
	if err := pack.WriteTarGz(&archive, r.created, entries); err != nil {
		return err
	}
	sbom, err := spdx.Program(r.about(base), binary, p.name)
	if err != nil {
		return err
	}
	r.programs = append(r.programs, published{p.name, platform, binary, base + ".tar.gz"})
	return errors.Join(r.write(base+".tar.gz", archive.Bytes()), r.write(base+".spdx.json", sbom))
}

// base returns what the names of the files of one program and platform begin with.
func (r *release) base(name, platform string) string {
	return name + "_" + r.version + "_" + strings.ReplaceAll(platform, "/", "_")
}

func (r *release) about(name string) spdx.About {
	return spdx.About{Name: name, Version: r.version, Revision: r.revision, Created: r.created}
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// packImage lets tools/image pack the binaries that the archives contain.
func (r *release) packImage(ctx context.Context, scratch string) error {
	dir := filepath.Join(scratch, "image")
	args := []string{"build", "--name", r.repository, "--version", r.version, "--revision", r.revision,
		"--created", fmt.Sprint(r.created.Unix()), "--licence", filepath.Join(r.source, "LICENSE"),
		"--source", r.sourceURL, "--out", dir}
	var linux []string
	for _, p := range r.programs {
		if p.program == programs[0].name && strings.HasPrefix(p.platform, "linux/") {
			args = append(args, "--binary", p.platform+"="+p.binary)
			linux = append(linux, p.platform)
		}
	}
	if text, err := exec.CommandContext(ctx, r.imageTool, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("packing the image: %w\n%s", err, text)
	}
	own := filepath.Base(r.repository)
	moves := map[string]string{own + ".oci.tar": r.imageFile()} // name of tools/image -> name in the release
	for _, p := range linux {
		moves[own+"-"+strings.ReplaceAll(p, "/", "-")+".spdx.json"] = r.base("kumiki-image", p) + ".spdx.json"
	}
	for from, to := range moves {
		content, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			return err
		}
		if err := r.write(to, content); err != nil {
			return err
		}
	}
	digest, err := digestOf(filepath.Join(r.out, r.imageFile()))
	r.imageSum = digest
	return err
}

func (r *release) imageFile() string { return "kumiki-image_" + r.version + ".oci.tar" }

// files returns the names of all files of a release, sorted.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a file", filepath.Join(dir, e.Name()))
		}
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, nil
}
