// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Tar writes a tar in which every entry belongs to root and has the same time.
type Tar struct {
	w   *tar.Writer
	at  time.Time
	err error // the first one; Close returns it
}

// NewTar returns a writer. Close must be called.
func NewTar(w io.Writer, at time.Time) *Tar { return &Tar{w: tar.NewWriter(w), at: at} }

// Close writes the end of the archive, and returns the first error of all writes.
func (t *Tar) Close() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Close()
}

// Dir adds a directory.
func (t *Tar) Dir(name string, mode fs.FileMode) {
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	t.add(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: bits}, nil)
}

// File adds a file.
func (t *Tar) File(name string, mode fs.FileMode, content []byte) {
	t.add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: int64(len(content))}, content)
}

// Link adds a symbolic link.
func (t *Tar) Link(name, to string) {
	t.add(tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, nil)
}

func (t *Tar) add(h tar.Header, content []byte) {
	if t.err != nil {
		return
	}
	h.ModTime, h.Format = t.at, tar.FormatPAX
	if t.err = t.w.WriteHeader(&h); t.err == nil {
		_, t.err = t.w.Write(content)
	}
	if t.err != nil {
		t.err = fmt.Errorf("tar entry %s of %d bytes: %w", h.Name, len(content), t.err)
	}
}

// Entry is a file of an archive.
type Entry struct {
	Name string
	Mode fs.FileMode
	Data []byte
}

// WriteTarGz writes files in the order given.
func WriteTarGz(w io.Writer, at time.Time, entries []Entry) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression) // without a name and a time in its header
	if err != nil {
		return err
	}
	t := NewTar(z, at)
	for _, e := range entries {
		t.File(e.Name, e.Mode, e.Data)
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
