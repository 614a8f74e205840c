// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobuf is the content type of single objects and lists, and of watches.
const (
	protobuf      = "application/vnd.kubernetes.protobuf"
	protobufWatch = protobuf + ";stream=watch"
	jsonType      = "application/json"
)

// magic precedes an object in protobuf (upstream: apimachinery, runtime/serializer/protobuf).
var magic = []byte("k8s\x00")

// marshaler is an API object.
type marshaler interface {
	Marshal() ([]byte, error)
}

// unmarshaler is an API object that is read from its protobuf bytes.
type unmarshaler interface {
	runtime.Object
	Unmarshal(raw []byte) error
}

// form writes the objects of one kind: in envelopes, in events of watches and in lists. Envelopes and events are put
// together from parts, because they are written for each object that changes; a test compares them with the types of
// apimachinery.
type form struct {
	kind schema.GroupVersionKind
	// head is what an envelope has before the object: the magic bytes and the kind.
	head []byte
}

// Tags of protobuf fields that are written by hand: number and "length-delimited".
const (
	eventType   = 1<<3 | 2 // of WatchEvent
	eventObject = 2<<3 | 2
	rawBytes    = 1<<3 | 2 // of RawExtension
	unknownRaw  = 2<<3 | 2 // of runtime.Unknown
	listItems   = 2<<3 | 2 // of every list
)

// tail is what an envelope has after the object: an empty content encoding and content type.
var tail = []byte{3<<3 | 2, 0, 4<<3 | 2, 0}

func newForm(kind schema.GroupVersionKind) form {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}}
	empty := must(unknown.Marshal()) // with no object, nothing stands between the kind and the tail
	return form{kind, append(magic[:len(magic):len(magic)], empty[:len(empty)-len(tail)]...)}
}

// field is the size of a length-delimited field with n bytes, whose tag takes one byte.
func field(n int) int { return 1 + (bits.Len64(uint64(n)|1)+6)/7 + n }

// enveloped is the size of an envelope.
func (f form) enveloped(raw int) int { return len(f.head) + field(raw) + len(tail) }

// appendEnvelope appends an object's bytes in an envelope with its kind.
func (f form) appendEnvelope(to, raw []byte) []byte {
	to = append(to, f.head...)
	to = binary.AppendUvarint(append(to, unknownRaw), uint64(len(raw)))
	return append(append(to, raw...), tail...)
}

// appendFrame appends an event of a watch as it goes over the wire: its length in four bytes, and the event.
func (f form) appendFrame(to []byte, event watch.EventType, raw []byte) []byte {
	object := f.enveloped(len(raw))
	to = binary.BigEndian.AppendUint32(to, uint32(field(len(event))+field(field(object))))
	to = append(append(to, eventType, byte(len(event))), event...)
	to = binary.AppendUvarint(append(to, eventObject), uint64(field(object)))
	to = binary.AppendUvarint(append(to, rawBytes), uint64(object))
	return f.appendEnvelope(to, raw)
}

// appendEvent appends an event of a watch, in protobuf or as a line of JSON.
func (f form) appendEvent(to []byte, asJSON bool, event watch.EventType, raw []byte) []byte {
	if !asJSON {
		return f.appendFrame(to, event, raw)
	}
	to = fmt.Appendf(to, `{"type":%q,"object":`, event)
	return append(append(to, f.json(raw)...), "}\n"...)
}

// lastOfList is the object of the bookmark that ends a list that streams in.
func lastOfList(version string) []byte {
	// Metadata is the first field of every object: these are the bytes of any kind.
	return must((&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}).Marshal())
}

// list is a list of objects in one piece.
func (f form) list(asJSON bool, version string, objects [][]byte) []byte {
	if asJSON {
		return f.listJSON(version, objects)
	}
	// Every list has its metadata as field 1 and its items as field 2, as NodeList has; the items are put in as they
	// are.
	raw := must((&corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: version}}).Marshal())
	for _, item := range objects {
		raw = binary.AppendUvarint(append(raw, listItems), uint64(len(item)))
		raw = append(raw, item...)
	}
	kind := f.kind
	kind.Kind += "List"
	return newForm(kind).appendEnvelope(nil, raw)
}

func (f form) listJSON(version string, objects [][]byte) []byte {
	body := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q},"items":[`,
		f.kind.Kind+"List", f.kind.GroupVersion().String(), version)
	for i, item := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, f.json(item)...)
	}
	return append(body, "]}"...)
}

// json is an object in JSON.
func (f form) json(raw []byte) []byte {
	obj, err := scheme.Scheme.New(f.kind)
	if err == nil {
		err = obj.(unmarshaler).Unmarshal(raw)
	}
	if err != nil {
		panic(fmt.Sprintf("standin: an object of its own, a %s, cannot be read: %v", f.kind.Kind, err))
	}
	obj.GetObjectKind().SetGroupVersionKind(f.kind)
	return must(json.Marshal(obj))
}

// must panics on an error that cannot occur: API objects always marshal.
func must(raw []byte, err error) []byte {
	if err != nil {
		panic(fmt.Sprintf("standin: an API object does not marshal: %v", err))
	}
	return raw
}
