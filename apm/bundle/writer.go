// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// fileNames are the names of the parts that this package writes: kind -> file name.
var fileNames = map[Kind]string{
	Trace:         "trace.out",
	CPU:           "cpu.pb.gz",
	Allocs:        "allocs.pb.gz",
	MetricsBefore: "metrics-before.txt",
	MetricsAfter:  "metrics-after.txt",
	Pods:          "pods.json",
	Timing:        "timing.json",
	Audit:         "audit.jsonl",
	Work:          "work.json",
	Samples:       "samples.json",
	Incident:      "incident.json",
	Recording:     "recording.tape",
	Digests:       "digests.bin",
	Metrics:       "metrics.txt",
	Goroutines:    "goroutines.txt",
}

// Writer writes one bundle. The manifest is written by Close, since it has the digests of the parts.
type Writer struct {
	// Manifest is what Close writes. The caller sets all fields but Format, Version and Parts.
	Manifest Manifest
	zip      *zip.Writer
}

// NewWriter returns a writer of a bundle into w.
func NewWriter(w io.Writer) *Writer {
	z := zip.NewWriter(w)
	// A scheduler may write it: it should rather be fast than small.
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestSpeed)
	})
	return &Writer{Manifest: Manifest{Format: format, Version: Version}, zip: z}
}

// Add writes a part. It sets the part's name, size and digest. The kind must be one of this package.
func (w *Writer) Add(p Part, content io.Reader) error {
	return w.AddFunc(p, func(to io.Writer) error {
		_, err := io.Copy(to, content)
		return err
	})
}

// AddFunc is Add for a part that is made while it is written, so that it is not in memory as a whole.
func (w *Writer) AddFunc(p Part, write func(io.Writer) error) error {
	p.Name = fileNames[p.Kind]
	method := zip.Deflate
	if strings.HasSuffix(p.Name, ".gz") || p.Kind == Digests {
		method = zip.Store // it is compressed already, or random except for zeros, which look like a zip bomb
	}
	file, err := w.zip.CreateHeader(&zip.FileHeader{Name: p.Name, Method: method, Modified: p.Ended.UTC()})
	if err != nil {
		return fmt.Errorf("writing part %s: %w", p.Name, err)
	}
	sum, size := sha256.New(), counter(0)
	if err := write(io.MultiWriter(file, sum, &size)); err != nil {
		return fmt.Errorf("writing part %s: %w", p.Name, err)
	}
	p.Size, p.SHA256 = int64(size), hex.EncodeToString(sum.Sum(nil))
	w.Manifest.Parts = append(w.Manifest.Parts, p)
	return nil
}

// counter counts bytes.
type counter int64

// Write counts b.
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// AddMissing notes that a part could not be recorded, and why.
func (w *Writer) AddMissing(p Part, why string) {
	p.Name, p.Size, p.SHA256, p.Missing = "", 0, "", why
	w.Manifest.Parts = append(w.Manifest.Parts, p)
}

// Close writes the manifest and the directory of the archive. It does not close the file.
func (w *Writer) Close() error {
	file, err := w.zip.CreateHeader(&zip.FileHeader{Name: manifestName, Method: zip.Deflate,
		Modified: w.Manifest.Ended.UTC()})
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	enc := json.NewEncoder(file)
	enc.SetIndent("", "  ")
	if err := enc.Encode(w.Manifest); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}
