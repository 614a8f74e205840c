// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// wanted is what build is asked for.
type wanted struct {
	Name, Version, Revision string
	Created                 time.Time // stands in every place of the image that has a time
	Licence                 string    // path of a file; empty for none
	Binaries                []binary
}

type binary struct {
	Platform string // os/architecture
	File     string
}

// uid is the user "nonroot" in /etc/passwd of the image, which the Deployments name. The configuration of the image sets
// no user, as that of kube-scheduler does not: kubeadm writes scheduler.conf for root with mode 0600, and a static pod
// that sets no user must be able to read it.
const uid = "65532"

const sbomPath = "usr/share/doc/kumiki/kumiki.spdx.json"

// build writes the images and returns the files, in the order of the platforms; the layout comes first.
func build(w wanted, dir string, progress io.Writer) ([]string, error) {
	tag, err := name.NewTag(w.Name + ":" + w.Version)
	if err != nil {
		return nil, err
	}
	base := filepath.Join(dir, path.Base(w.Name))
	files := []string{base + ".oci.tar"}
	slices.SortFunc(w.Binaries, func(a, b binary) int { return bytes.Compare([]byte(a.Platform), []byte(b.Platform)) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range w.Binaries {
		platform, err := v1.ParsePlatform(b.Platform)
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w", b.Platform, err)
		}
		if err := standsAlone(b.File, platform); err != nil {
			return nil, err
		}
		fmt.Fprintln(progress, "packing", b.Platform)
		sbom, err := billOfMaterials(w, b)
		if err != nil {
			return nil, err
		}
		img, err := imageOf(w, b, platform, sbom)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", b.Platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		one := fmt.Sprintf("%s-%s-%s", base, platform.OS, platform.Architecture)
		if err := tarball.WriteToFile(one+".tar", tag, img); err != nil {
			return nil, fmt.Errorf("writing %s: %w", one+".tar", err)
		}
		if err := os.WriteFile(one+".spdx.json", sbom, 0o644); err != nil {
			return nil, err
		}
		files = append(files, one+".tar", one+".spdx.json")
	}
	index = mutate.Annotations(index, labels(w)).(v1.ImageIndex)
	return files, writeLayout(files[0], w.Version, index)
}

// imageOf makes the image of one platform: one layer and what starts in it.
func imageOf(w wanted, b binary, platform *v1.Platform, sbom []byte) (v1.Image, error) {
	content, err := rootFiles(w, b, sbom)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: w.Created}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: created,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint:   []string{"/kumiki"},
			Env:          []string{"PATH=/usr/local/bin"},
			WorkingDir:   "/",
			ExposedPorts: map[string]struct{}{"10259/tcp": {}},
			Labels:       labels(w),
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make image"}})
}

// labels are those that the OCI image specification names (annotations.md).
func labels(w wanted) map[string]string {
	const page = "https://github.com/kumiki-scheduler/kumiki"
	l := map[string]string{
		"org.opencontainers.image.title":         "kumiki",
		"org.opencontainers.image.description":   "A scheduler for Kubernetes, beside kube-scheduler or in its place",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.source":        page,
		"org.opencontainers.image.documentation": page + "/blob/main/docs/deploy.md",
		"org.opencontainers.image.version":       w.Version,
		"org.opencontainers.image.created":       w.Created.Format(time.RFC3339),
	}
	if w.Revision != "" {
		l["org.opencontainers.image.revision"] = w.Revision
	}
	return l
}

// rootFiles returns the whole root file system as a tar, in order of path. All of it belongs to root. Other users can
// write to /tmp only, and not even there if the root file system is read-only.
func rootFiles(w wanted, b binary, sbom []byte) ([]byte, error) {
	program, err := os.ReadFile(b.File)
	if err != nil {
		return nil, err
	}
	var licence []byte
	if w.Licence != "" {
		if licence, err = os.ReadFile(w.Licence); err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	t := tarOf{tar.NewWriter(&buf), w.Created}
	t.dir("etc", 0o755)
	t.file("etc/group", 0o644, []byte("root:x:0:\nnonroot:x:"+uid+":\n"))
	t.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:"+uid+":"+uid+":nonroot:/:/sbin/nologin\n"))
	t.file("kumiki", 0o755, program)
	t.dir("tmp", fs.ModeSticky|0o777)
	for _, d := range []string{"usr", "usr/local", "usr/local/bin"} {
		t.dir(d, 0o755)
	}
	// The name that it is started under decides what it is. The way is relative, so that it holds in an unpacked image.
	for _, n := range []string{"kube-scheduler", "kubectl-kumiki", "kumiki"} {
		t.link("usr/local/bin/"+n, "../../../kumiki")
	}
	for _, d := range []string{"usr/share", "usr/share/doc", "usr/share/doc/kumiki"} {
		t.dir(d, 0o755)
	}
	if licence != nil {
		t.file("usr/share/doc/kumiki/LICENSE", 0o644, licence)
	}
	t.file(sbomPath, 0o644, sbom)
	if err := t.Close(); err != nil { // it writes the end, which must be in what is returned
		return nil, err
	}
	return buf.Bytes(), nil
}

// tarOf writes entries that depend on nothing but what is given. A tar in memory fails for wrong headers alone, which
// are mistakes of this program.
type tarOf struct {
	*tar.Writer
	at time.Time
}

func (t tarOf) dir(name string, mode fs.FileMode) {
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	t.add(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: bits}, nil)
}

func (t tarOf) file(name string, mode fs.FileMode, content []byte) {
	t.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: int64(len(content))}, content)
}

func (t tarOf) link(name, to string) {
	t.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, nil)
}

func (t tarOf) add(h tar.Header, content []byte) {
	h.ModTime, h.Format = t.at, tar.FormatPAX
	err := t.WriteHeader(&h)
	if err == nil {
		_, err = t.Write(content)
	}
	if err != nil {
		panic(fmt.Sprintf("tar entry %s of %d bytes: %v", h.Name, len(content), err))
	}
}

// writeLayout writes an OCI image layout, as one tar, that holds the index under the name of its version.
func writeLayout(file, version string, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(file), "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	t := tarOf{tar.NewWriter(f), time.Unix(0, 0)}
	// WalkDir goes in order of name.
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			t.dir(name, 0o755)
			return nil
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			t.file(name, 0o644, content)
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}
