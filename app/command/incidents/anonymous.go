// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
)

// leftOut is why a bundle with pseudonyms lacks a part.
const leftOut = "left out, because its names are not replaced"

// Anonymize writes the bundle in a file again with pseudonyms in place of names (recording.Pseudonyms). It is an error
// if a decision would differ. Parts that may contain names elsewhere are left out.
func Anonymize(name string, plugins app.Plugins, to io.Writer) error {
	in, err := Read(name)
	if err != nil {
		return err
	}
	b, err := bundle.Open(name)
	if err != nil {
		return err
	}
	defer b.Close()
	a, err := tape.Anonymize(func() (recorded, digests io.ReadCloser, err error) {
		if recorded, err = b.Open(bundle.Recording); err != nil {
			return nil, nil, err
		}
		if digests, err = b.Open(bundle.Digests); err != nil {
			recorded.Close()
		}
		return recorded, digests, err
	}, plugins)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	in.Anonymous, in.File, in.Detail = true, "", a.Text(in.Detail)
	if in.InHand != "" {
		if line, err := a.Line([]byte(in.InHand)); err == nil {
			in.InHand = string(bytes.TrimSpace(line))
		} else {
			in.InHand = ""
		}
	}
	report, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	w := bundle.NewWriter(to)
	w.Manifest.Tool, w.Manifest.Began, w.Manifest.Ended = b.Manifest.Tool, b.Manifest.Began, b.Manifest.Ended
	content := map[bundle.Kind][]byte{bundle.Incident: report, bundle.Recording: a.Recording, bundle.Digests: a.Digests}
	for _, p := range b.Manifest.Parts {
		data, known := content[p.Kind]
		switch {
		case known:
			err = w.Add(p, bytes.NewReader(data))
		case p.Missing == "":
			w.AddMissing(p, leftOut)
		default:
			w.AddMissing(p, a.Text(p.Missing))
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
