// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// bookmark is the type of events that say how far a watch is.
const bookmark = "BOOKMARK"

// Seen is an event of a watch, as rules see it.
type Seen struct {
	Resource, Type  string
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	object          []byte
}

// Object decodes the whole object.
func (s Seen) Object() (runtime.Object, error) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(s.object, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding %s of %s %s/%s: %w", s.Type, s.Resource, s.Namespace, s.Name, err)
	}
	return obj, nil
}

// form is how the events of a watch are written.
type form interface {
	// reader returns a function that gives the bytes of the next event, without what frames it.
	reader(io.Reader) func() ([]byte, error)
	// frame puts around an event what the reader took away.
	frame([]byte) []byte
	// read says what an event is about.
	read([]byte) (Seen, error)
	// garbage is an event that frames well and decodes badly.
	garbage() []byte
	// gone is an ERROR event that says that the version is too old.
	gone() []byte
}

// formOf finds the form of a watch, nil for one that is not known.
func formOf(contentType string) form {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return nil
	case strings.HasPrefix(kind, "application/vnd.kubernetes.protobuf"):
		return protoForm{}
	case kind == "application/json":
		return jsonForm{}
	}
	return nil
}

// expired is the status that ends a watch whose version is too old.
func expired() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410,
		Message: "too old resource version: 1 (2)",
	}
}

// jsonForm is one JSON value after another.
type jsonForm struct{}

func (jsonForm) reader(r io.Reader) func() ([]byte, error) {
	d := json.NewDecoder(r)
	return func() ([]byte, error) {
		var raw json.RawMessage
		err := d.Decode(&raw)
		return raw, err
	}
}

func (jsonForm) frame(event []byte) []byte { return append(bytes.Clone(event), '\n') }

func (jsonForm) read(event []byte) (Seen, error) {
	var outer struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(event, &outer); err != nil {
		return Seen{}, fmt.Errorf("reading an event: %w", err)
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(outer.Object, &meta); err != nil {
		return Seen{}, fmt.Errorf("reading the object of an event: %w", err)
	}
	return seen(outer.Type, &meta, outer.Object), nil
}

func (jsonForm) garbage() []byte {
	return []byte(`{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":17,"spec":[]}}`)
}

func (jsonForm) gone() []byte {
	status, err := json.Marshal(expired())
	if err != nil {
		panic(fmt.Sprintf("fault: a status cannot be encoded: %v", err))
	}
	return []byte(`{"type":"ERROR","object":` + string(status) + `}`)
}

// protoForm is Kubernetes' protobuf: the length in four bytes, then a WatchEvent whose object has an envelope of
// its own.
type protoForm struct{}

// magic begins an object in an envelope (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
var magic = []byte{0x6b, 0x38, 0x73, 0x00}

// mostBytes bounds one event; what is longer is not an event.
const mostBytes = 64 << 20

func (protoForm) reader(r io.Reader) func() ([]byte, error) {
	return func() ([]byte, error) {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > mostBytes {
			return nil, fmt.Errorf("fault: an event of %d bytes", n)
		}
		event := make([]byte, n)
		_, err := io.ReadFull(r, event)
		return event, err
	}
}

func (protoForm) frame(event []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

func (protoForm) read(event []byte) (Seen, error) {
	var outer metav1.WatchEvent
	if err := outer.Unmarshal(event); err != nil {
		return Seen{}, fmt.Errorf("reading an event: %w", err)
	}
	raw, enveloped := bytes.CutPrefix(outer.Object.Raw, magic)
	if !enveloped {
		return Seen{}, fmt.Errorf("reading an event: an object of %d bytes has no envelope", len(outer.Object.Raw))
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return Seen{}, fmt.Errorf("reading the envelope of an event: %w", err)
	}
	// The first field of every kind is its metadata; what else it has is passed over.
	var meta metav1.PartialObjectMetadata
	if err := meta.Unmarshal(envelope.Raw); err != nil {
		return Seen{}, fmt.Errorf("reading the object of an event: %w", err)
	}
	return seen(outer.Type, &meta, outer.Object.Raw), nil
}

func (protoForm) garbage() []byte {
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: []byte{0x0a, 0xff, 0xff, 0xff}}
	return protoEvent("MODIFIED", &envelope)
}

func (protoForm) gone() []byte {
	status := expired()
	raw, err := status.Marshal()
	if err != nil {
		panic(fmt.Sprintf("fault: a status cannot be encoded: %v", err))
	}
	return protoEvent("ERROR", &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw})
}

func protoEvent(kind string, envelope *runtime.Unknown) []byte {
	object, err := envelope.Marshal()
	if err != nil {
		panic(fmt.Sprintf("fault: an envelope cannot be encoded: %v", err))
	}
	outer := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: append(bytes.Clone(magic), object...)}}
	event, err := outer.Marshal()
	if err != nil {
		panic(fmt.Sprintf("fault: an event cannot be encoded: %v", err))
	}
	return event
}

func seen(kind string, meta *metav1.PartialObjectMetadata, object []byte) Seen {
	return Seen{Type: kind, Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, object: object}
}
