// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
)

// check reads a layout with nothing but a tar reader, so that it shares little with what wrote it: every blob must have
// the digest of its name. Then it unpacks the image of this machine's architecture and runs its entry point with args.
func check(file string, args []string, out, progress io.Writer) error {
	all, err := readImages(file)
	if err != nil {
		return err
	}
	for _, img := range all {
		fmt.Fprintf(progress, "%s: %s, %d bytes packed, %d unpacked\n", img.platform, img.digest, img.packed, len(img.layer))
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
	blobs, err := readLayout(file)
	if err != nil {
		return nil, err
	}
	var top, index v1.IndexManifest
	if err := blobs.read("index.json", &top); err != nil {
		return nil, err
	}
	if len(top.Manifests) != 1 {
		return nil, fmt.Errorf("%s holds %d images, want one index", file, len(top.Manifests))
	}
	if err := blobs.read(blobName(top.Manifests[0].Digest), &index); err != nil {
		return nil, err
	}
	var all []*unpacked
	for _, m := range index.Manifests {
		img, err := blobs.image(m)
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

// files: name -> content.
type files map[string][]byte

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// readLayout reads the tar and holds every blob against its name.
func readLayout(file string) (files, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := files{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
		if want, is := strings.CutPrefix(h.Name, "blobs/sha256/"); is {
			if sum := sha256.Sum256(all[h.Name]); hex.EncodeToString(sum[:]) != want {
				return nil, fmt.Errorf("%s: blob %s has the sum %x", file, want, sum)
			}
		}
	}
	if all["oci-layout"] == nil {
		return nil, fmt.Errorf("%s is no image layout: no oci-layout in it", file)
	}
	return all, nil
}

// read decodes one JSON file of the layout.
func (f files) read(name string, into any) error {
	content, ok := f[name]
	if !ok {
		return fmt.Errorf("no %s in the layout", name)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
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

// image reads one image of one layer and compares all sums on the way.
func (f files) image(of v1.Descriptor) (*unpacked, error) {
	var m v1.Manifest
	if err := f.read(blobName(of.Digest), &m); err != nil {
		return nil, err
	}
	img := &unpacked{platform: of.Platform, digest: of.Digest, rawConfig: f[blobName(m.Config.Digest)]}
	if err := f.read(blobName(m.Config.Digest), &img.config); err != nil {
		return nil, err
	}
	if len(m.Layers) != 1 || len(img.config.RootFS.DiffIDs) != 1 {
		return nil, fmt.Errorf("%d layers, %d in its configuration, want one", len(m.Layers), len(img.config.RootFS.DiffIDs))
	}
	packed, ok := f[blobName(m.Layers[0].Digest)]
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
