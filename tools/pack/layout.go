// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// WriteLayout writes an OCI image layout, as one tar, that contains an image or an index under the name of its version.
func WriteLayout(file, version string, content mutate.Appendable) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(file), "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	switch c := content.(type) {
	case v1.ImageIndex:
		err = top.AppendIndex(c, name)
	case v1.Image:
		err = top.AppendImage(c, name)
	default:
		err = fmt.Errorf("%T is neither an image nor an index", content)
	}
	if err != nil {
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
	t := NewTar(f, time.Unix(0, 0))
	// WalkDir goes in order of name.
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			t.Dir(name, 0o755)
			return nil
		}
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			t.File(name, 0o644, content)
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// Files of a layout: name -> content.
type Files map[string][]byte

// BlobName returns the name of the file with a blob.
func BlobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// ReadLayout reads a layout that is one tar, with nothing but a tar reader, and compares every blob with the digest in
// its name.
func ReadLayout(file string) (Files, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := Files{}
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

// Read decodes one JSON file of the layout.
func (f Files) Read(name string, into any) error {
	content, ok := f[name]
	if !ok {
		return fmt.Errorf("no %s in the layout", name)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
