// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
)

// Anonymous is the recording of a bundle with pseudonyms in place of names.
type Anonymous struct {
	*recording.Pseudonyms
	// Recording and Digests are the parts of the bundle. The digests are those of a replay, since effects have names.
	Recording, Digests []byte
}

// OpenParts opens the recording of a bundle and its digests from their beginning.
type OpenParts func() (recorded, digests io.ReadCloser, err error)

// Anonymize replaces the names in the recording of a bundle. It replays both recordings: it is an error if the original
// has other effects than at the time, or if a decision differs with pseudonyms.
func Anonymize(open OpenParts, plugins app.Plugins) (*Anonymous, error) {
	a := &Anonymous{Pseudonyms: recording.NewPseudonyms()}
	if err := a.each(open, func(at int, raw []byte) error {
		if at == 1 {
			return a.keepConfig(raw)
		}
		return a.Collect(raw)
	}); err != nil {
		return nil, err
	}
	a.Assign()
	var out bytes.Buffer
	if err := a.each(open, func(at int, raw []byte) error {
		line, err := raw, error(nil)
		if at == 1 {
			line, err = a.JSON(raw)
			line = append(line, '\n')
		} else {
			line, err = a.Line(raw)
		}
		out.Write(line)
		return err
	}); err != nil {
		return nil, err
	}
	a.Recording = out.Bytes()
	return a, a.replay(open, plugins)
}

// each visits the lines of a recording, from 1. A last line without an end is left out.
func (a *Anonymous) each(open OpenParts, visit func(at int, raw []byte) error) error {
	recorded, digests, err := open()
	if err != nil {
		return err
	}
	defer recorded.Close()
	digests.Close()
	lines := bufio.NewReaderSize(recorded, 1<<20)
	for at := 1; ; at++ {
		raw, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(at, raw)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", at, err)
		}
	}
}

// keepConfig keeps the names of profiles and plugins. Other values of the configuration are replaced if they are names
// of objects, too.
func (a *Anonymous) keepConfig(first []byte) error {
	var h header
	if err := json.Unmarshal(first, &h); err != nil || h.Config == nil || !h.Digests {
		return errors.New("not the recording of a bundle")
	}
	var tree any
	if err := json.Unmarshal(first, &tree); err != nil {
		return err
	}
	a.keepNames("", tree)
	return nil
}

func (a *Anonymous) keepNames(field string, v any) {
	switch v := v.(type) {
	case string:
		switch field {
		case "values", "key", "topologyKey", "matchLabels":
		default:
			a.Keep(v)
		}
	case []any:
		for _, e := range v {
			a.keepNames(field, e)
		}
	case map[string]any:
		for name, e := range v { // order: a set
			a.keepNames(name, e)
		}
	}
}

// replay replays the original and then the recording with pseudonyms, compares the decisions, and sets the digests.
func (a *Anonymous) replay(open OpenParts, plugins app.Plugins) error {
	recorded, digests, err := open()
	if err != nil {
		return err
	}
	defer recorded.Close()
	defer digests.Close()
	var want []uint64
	p := player{plugins: plugins, note: func(string) {}, digests: bufio.NewReader(digests),
		f: func(_ *engine.Engine, s Step) error {
			if s.Differs() {
				return fmt.Errorf("event %d has other effects than at the time, so names are not replaced", s.Number)
			}
			sum, err := a.sum(s.Now, a.Pseudonyms)
			want = append(want, sum)
			return err
		}}
	if err := p.play(recorded); err != nil {
		return err
	}
	var digester incident.Digester
	at := 0
	p = player{plugins: plugins, note: func(string) {}, digests: bufio.NewReader(zeros{}),
		f: func(_ *engine.Engine, s Step) error {
			sum, err := a.sum(s.Now, nil)
			if err == nil && (at == len(want) || sum != want[at]) {
				err = fmt.Errorf("event %d has other effects with pseudonyms, so names are not replaced", s.Number)
			}
			at++
			a.Digests = binary.LittleEndian.AppendUint64(a.Digests, digester.Digest(s.Effects))
			return err
		}}
	return p.play(bytes.NewReader(a.Recording))
}

// zeros stands for digests that are not compared.
type zeros struct{}

// Read returns zeros.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// texts are what users read, besides the path of a decision. It may list names in the order of what is replaced.
var texts = regexp.MustCompile(`"(message|Message|Note|What|Details|path|cause)":"(?:[^"\\]|\\.)*"`)

// sum returns a digest of effects without texts, and with pseudonyms if there are any.
func (a *Anonymous) sum(effects [][]byte, names *recording.Pseudonyms) (uint64, error) {
	if len(effects) == 0 {
		return 0, nil
	}
	var b []byte
	for _, raw := range effects {
		line, err := raw, error(nil)
		if names != nil {
			line, err = names.Line(raw) // also the answers of plugins, which are no JSON
		}
		if err == nil { // the keys of both are sorted, so that they can be compared
			line, err = recording.NewPseudonyms().JSON(line)
		}
		if err != nil {
			return 0, err
		}
		b = append(append(b, texts.ReplaceAll(line, nil)...), '\n')
	}
	return incident.Sum(b), nil
}
