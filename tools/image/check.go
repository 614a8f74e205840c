// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kumiki-scheduler/kumiki/tools/pack"
)

// check reads a layout with nothing but a tar reader, so that it shares little with what wrote it: every blob must have
// the digest of its name. Then it unpacks the image of this machine's architecture and runs its entry point with args.
func check(file string, args []string, out, progress io.Writer) error {
	all, err := readImages(file)
	if err != nil {
		return err
	}
	for _, img := range all {
		fmt.Fprintf(progress, "%s: %s, %d bytes packed, %d unpacked\n",
			img.platform, img.digest, img.packed, len(img.layer))
	}
	own := ofThisMachine(all)
	if own == nil {
		fmt.Fprintf(progress, "no image for %s/%s, so nothing was run\n", runtime.GOOS, runtime.GOARCH)
		return nil
	}
	if err := own.run(args, out, progress); err != nil {
		return fmt.Errorf("image for %s: %w", own.platform, err)
	}
	return nil
}

// unpackTo writes the image of this machine's architecture as a container runtime does: its root file system to
// DIR/rootfs and its configuration to DIR/config.json.
func unpackTo(file, dir string) error {
	all, err := readImages(file)
	if err != nil {
		return err
	}
	own := ofThisMachine(all)
	if own == nil {
		return fmt.Errorf("%s contains no image for %s/%s", file, runtime.GOOS, runtime.GOARCH)
	}
	rootfs := filepath.Join(dir, "rootfs")
	if err := os.MkdirAll(rootfs, 0o755); err != nil {
		return err
	}
	if err := own.unpack(rootfs); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), own.rawConfig, 0o644)
}

// readImages reads all images of a layout, in the order of its index.
func readImages(file string) ([]*unpacked, error) {
	blobs, err := pack.ReadLayout(file)
	if err != nil {
		return nil, err
	}
	var top, index v1.IndexManifest
	if err := blobs.Read("index.json", &top); err != nil {
		return nil, err
	}
	if len(top.Manifests) != 1 {
		return nil, fmt.Errorf("%s holds %d images, want one index", file, len(top.Manifests))
	}
	if err := blobs.Read(pack.BlobName(top.Manifests[0].Digest), &index); err != nil {
		return nil, err
	}
	var all []*unpacked
	for _, m := range index.Manifests {
		img, err := imageIn(blobs, m)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", m.Platform, err)
		}
		all = append(all, img)
	}
	return all, nil
}

// ofThisMachine returns the image that this machine can run, nil if there is none.
func ofThisMachine(all []*unpacked) *unpacked {
	for _, img := range all {
		if img.platform.OS == runtime.GOOS && img.platform.Architecture == runtime.GOARCH {
			return img
		}
	}
	return nil
}

// unpacked is an image as it would be started.
type unpacked struct {
	platform  *v1.Platform
	digest    v1.Hash // of its manifest
	config    v1.ConfigFile
	rawConfig []byte
	layer     []byte // the tar, not compressed
	packed    int64
}

// imageIn reads one image of one layer and compares all sums on the way.
func imageIn(f pack.Files, of v1.Descriptor) (*unpacked, error) {
	var m v1.Manifest
	if err := f.Read(pack.BlobName(of.Digest), &m); err != nil {
		return nil, err
	}
	img := &unpacked{platform: of.Platform, digest: of.Digest, rawConfig: f[pack.BlobName(m.Config.Digest)]}
	if err := f.Read(pack.BlobName(m.Config.Digest), &img.config); err != nil {
		return nil, err
	}
	if len(m.Layers) != 1 || len(img.config.RootFS.DiffIDs) != 1 {
		return nil, fmt.Errorf("%d layers, %d in its configuration, want one", len(m.Layers), len(img.config.RootFS.DiffIDs))
	}
	packed, ok := f[pack.BlobName(m.Layers[0].Digest)]
	if !ok {
		return nil, fmt.Errorf("no layer %s", m.Layers[0].Digest)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	if img.layer, err = io.ReadAll(z); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(img.layer); hex.EncodeToString(sum[:]) != img.config.RootFS.DiffIDs[0].Hex {
		return nil, fmt.Errorf("the unpacked layer has the sum %x, want %s", sum, img.config.RootFS.DiffIDs[0])
	}
	img.packed = int64(len(packed))
	return img, nil
}

// run unpacks the image and starts its entry point with an empty environment.
func (u *unpacked) run(args []string, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := u.unpack(dir); err != nil {
		return err
	}
	start := append(append([]string(nil), u.config.Config.Entrypoint...), args...)
	c := exec.Command(filepath.Join(dir, start[0]), start[1:]...)
	c.Env, c.Dir, c.Stdout, c.Stderr = u.config.Config.Env, dir, out, progress
	if err := c.Run(); err != nil {
		return fmt.Errorf("running %q out of it: %w", start, err)
	}
	return nil
}

// unpack writes the layer to a directory. A name or a link that leads out of it is refused.
func (u *unpacked) unpack(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(bytes.NewReader(u.layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.Mkdir(name, 0o755)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = root.WriteFile(name, content, fs.FileMode(h.Mode).Perm())
			}
		default:
			err = fmt.Errorf("entry of type %q", h.Typeflag)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", h.Name, err)
		}
	}
}
