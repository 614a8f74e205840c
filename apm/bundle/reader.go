// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// smallPart is the size up to which the compression ratio does not matter.
const smallPart = 1 << 20

// Missing is the error for a part that a bundle does not have.
type Missing struct {
	Kind Kind
	Why  string
}

// Error states the reason.
func (m *Missing) Error() string { return fmt.Sprintf("no %s: %s", m.Kind, m.Why) }

// Reader reads one bundle. The methods may be called from several goroutines.
type Reader struct {
	Manifest Manifest
	files    map[string]*zip.File // name -> file
	limits   Limits
	file     *os.File // nil if the caller owns the source
}

// Open opens a bundle in a file with DefaultLimits. The caller must call Close.
func Open(name string) (*Reader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the profile: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var r *Reader
	if err == nil {
		r, err = NewReader(file, info.Size(), DefaultLimits)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	r.file = file
	return r, nil
}

// NewReader returns a reader of a bundle of size bytes. It reads the manifest, and no part.
func NewReader(source io.ReaderAt, size int64, l Limits) (*Reader, error) {
	archive, err := zip.NewReader(source, size)
	if err != nil {
		return nil, fmt.Errorf("not a bundle, or truncated: %w", err)
	}
	if len(archive.File) > l.Files {
		return nil, fmt.Errorf("%d files are more than the limit of %d", len(archive.File), l.Files)
	}
	r := &Reader{files: map[string]*zip.File{}, limits: l}
	for _, f := range archive.File {
		if !plainName.MatchString(f.Name) {
			return nil, fmt.Errorf("the name %q in the archive is not a plain file name", f.Name)
		}
		if r.files[f.Name] != nil {
			return nil, fmt.Errorf("two files have the name %q", f.Name)
		}
		r.files[f.Name] = f
	}
	if err := r.readManifest(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) readManifest() error {
	file := r.files[manifestName]
	if file == nil {
		return fmt.Errorf("not a bundle: the archive has no %s", manifestName)
	}
	content, err := file.Open()
	if err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, r.limits.Manifest+1))
	if err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	if int64(len(text)) > r.limits.Manifest {
		return fmt.Errorf("the manifest has more than %d bytes", r.limits.Manifest)
	}
	if err := json.Unmarshal(text, &r.Manifest); err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	return r.Manifest.check(r.limits)
}

// Close closes the file that Open has opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Part returns the entry of a kind in the manifest, and false if there is none.
func (r *Reader) Part(kind Kind) (Part, bool) {
	for _, p := range r.Manifest.Parts {
		if p.Kind == kind {
			return p, true
		}
	}
	return Part{}, false
}

// Open returns the content of a part, of which size and digest were checked. The error is a *Missing if the bundle has
// no such part.
func (r *Reader) Open(kind Kind) (io.ReadCloser, error) {
	p, ok := r.Part(kind)
	switch {
	case !ok:
		return nil, &Missing{kind, "it was not recorded"}
	case p.Missing != "":
		return nil, &Missing{kind, p.Missing}
	}
	file := r.files[p.Name]
	if file == nil {
		return nil, fmt.Errorf("the archive has no part %s", p.Name)
	}
	if packed := int64(file.CompressedSize64); p.Size > smallPart && p.Size/r.limits.Ratio > packed {
		return nil, fmt.Errorf("part %s of %d bytes has %d bytes in the archive: the compression ratio exceeds %d",
			p.Name, p.Size, packed, r.limits.Ratio)
	}
	if err := verify(file, p); err != nil {
		return nil, fmt.Errorf("part %s: %w", p.Name, err)
	}
	return openFile(file, p)
}

// openFile opens a part, which ends after the size in the manifest.
func openFile(file *zip.File, p Part) (io.ReadCloser, error) {
	content, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", p.Name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(content, p.Size), content}, nil
}

// verify reads a part and compares it with the manifest. A part is read before it is returned, because what reads it
// may use the beginning before the end is known to be wrong.
func verify(file *zip.File, p Part) error {
	content, err := file.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(content, p.Size+1))
	switch {
	case err != nil:
		return fmt.Errorf("truncated or damaged: %w", err)
	case n != p.Size:
		return fmt.Errorf("the size is not the %d bytes that the manifest states", p.Size)
	case hex.EncodeToString(sum.Sum(nil)) != p.SHA256:
		return errors.New("the content does not have the digest that the manifest states")
	}
	return nil
}
