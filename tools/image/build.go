// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
	"github.com/kumiki-scheduler/kumiki/tools/spdx"
)

// wanted is what build is asked for.
type wanted struct {
	Name, Version, Revision string
	Source                  string    // address of the source; empty if it is published nowhere
	Created                 time.Time // stands in every place of the image that has a time
	Licence                 string    // path of a file; empty for none
	Binaries                []binary
}

type binary struct {
	Platform string // os/architecture
	File     string
}

// uid is the user "nonroot" in /etc/passwd of the image, which the Deployments name. The configuration of the image
// sets no user, as that of kube-scheduler does not: kubeadm writes scheduler.conf for root with mode 0600, and a static
// pod that sets no user must be able to read it.
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
		about := spdx.About{Name: "kumiki for " + b.Platform, Version: w.Version, Revision: w.Revision, Created: w.Created}
		sbom, err := spdx.Program(about, b.File, "kumiki")
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
	return files, pack.WriteLayout(files[0], w.Version, index)
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

// labels returns those that the OCI image specification names (annotations.md) and that are known.
func labels(w wanted) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "kumiki",
		"org.opencontainers.image.description": "A scheduler for Kubernetes, beside kube-scheduler or in its place",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     w.Version,
		"org.opencontainers.image.created":     w.Created.Format(time.RFC3339),
	}
	if w.Revision != "" {
		l["org.opencontainers.image.revision"] = w.Revision
	}
	if w.Source != "" {
		l["org.opencontainers.image.source"] = w.Source
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
	t := pack.NewTar(&buf, w.Created)
	t.Dir("etc", 0o755)
	t.File("etc/group", 0o644, []byte("root:x:0:\nnonroot:x:"+uid+":\n"))
	t.File("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:"+uid+":"+uid+":nonroot:/:/sbin/nologin\n"))
	t.File("kumiki", 0o755, program)
	t.Dir("tmp", fs.ModeSticky|0o777)
	for _, d := range []string{"usr", "usr/local", "usr/local/bin"} {
		t.Dir(d, 0o755)
	}
	// The name that it is started under decides what it is. The way is relative, so that it holds in an unpacked image.
	for _, n := range []string{"kube-scheduler", "kubectl-kumiki", "kumiki"} {
		t.Link("usr/local/bin/"+n, "../../../kumiki")
	}
	for _, d := range []string{"usr/share", "usr/share/doc", "usr/share/doc/kumiki"} {
		t.Dir(d, 0o755)
	}
	if licence != nil {
		t.File("usr/share/doc/kumiki/LICENSE", 0o644, licence)
	}
	t.File(sbomPath, 0o644, sbom)
	if err := t.Close(); err != nil { // it writes the end, which must be in what is returned
		return nil, err
	}
	return buf.Bytes(), nil
}
