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
	blobs, err := readLayout(file)
	if err != nil {
		return err
	}
	var top, index v1.IndexManifest
	if err := blobs.read("index.json", &top); err != nil {
		return err
	}
	if len(top.Manifests) != 1 {
		return fmt.Errorf("%s holds %d images, want one index", file, len(top.Manifests))
	}
	if err := blobs.read(blobName(top.Manifests[0].Digest), &index); err != nil {
		return err
	}
	ran := false
	for _, m := range index.Manifests {
		img, err := blobs.image(m)
		if err != nil {
			return fmt.Errorf("image for %s: %w", m.Platform, err)
		}
		fmt.Fprintf(progress, "%s: %s, %d bytes packed, %d unpacked\n", m.Platform, m.Digest, img.packed, len(img.layer))
		if m.Platform.OS != runtime.GOOS || m.Platform.Architecture != runtime.GOARCH {
			continue
		}
		ran = true
		if err := img.run(args, out, progress); err != nil {
			return fmt.Errorf("image for %s: %w", m.Platform, err)
		}
	}
	if !ran {
		fmt.Fprintf(progress, "no image for %s/%s, so nothing was run\n", runtime.GOOS, runtime.GOARCH)
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
	config v1.ConfigFile
	layer  []byte // the tar, not compressed
	packed int64
}

// image reads one image of one layer and compares all sums on the way.
func (f files) image(of v1.Descriptor) (*unpacked, error) {
	var m v1.Manifest
	if err := f.read(blobName(of.Digest), &m); err != nil {
		return nil, err
	}
	img := &unpacked{}
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
