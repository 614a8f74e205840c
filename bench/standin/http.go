// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// setHeaders sets the headers of every answer of an API server: its clients have to read them.
func setHeaders(out, in http.Header) {
	out["Audit-Id"] = in["Audit-Id"]
	out["Cache-Control"] = noCache
	out["X-Kubernetes-Pf-Flowschema-Uid"] = flowSchema
	out["X-Kubernetes-Pf-Prioritylevel-Uid"] = priorityLevel
}

// Values of headers, made once. UIDs have the form of an API server's.
var (
	noCache       = []string{"no-cache, private"}
	flowSchema    = []string{"5c3f5c0e-6c26-4f8e-9d1b-8e0f1a2b3c4d"}
	priorityLevel = []string{"0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"}
)

// wantsJSON reports whether a client does not take protobuf.
func wantsJSON(in *http.Request) bool { return !strings.Contains(in.Header.Get("Accept"), protobuf) }

// buffers are for bodies of requests. A watch or a list has none, so that all are small.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// bodyOf reads the body of a request into a buffer, or into a larger one if it is too small.
func bodyOf(in *http.Request, buf []byte) ([]byte, error) {
	to := bytes.NewBuffer(buf[:0])
	_, err := to.ReadFrom(in.Body)
	return to.Bytes(), err
}

// decode reads a body in protobuf or JSON.
func decode(in *http.Request, into unmarshaler) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	body, err := bodyOf(in, *buf)
	*buf = body[:0]
	if err != nil {
		return err
	}
	return decodeBytes(body, into)
}

// decodeBytes reads an object. Protobuf of the expected kind, which schedulers send for each pod, does not take the
// way through the scheme, which costs several times as much.
func decodeBytes(body []byte, into unmarshaler) error {
	raw, isProtobuf := bytes.CutPrefix(body, magic)
	if !isProtobuf {
		_, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
		return err
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(raw); err != nil {
		return err
	}
	known, _, err := scheme.Scheme.ObjectKinds(into)
	if err != nil {
		return err
	}
	if got := unknown.GroupVersionKind(); got != known[0] {
		return fmt.Errorf("the body is a %s, not a %s", got, known[0])
	}
	return into.Unmarshal(unknown.Raw)
}

// answer writes an object, in protobuf or JSON.
func answer(out http.ResponseWriter, in *http.Request, code int, obj runtime.Object) {
	kind := obj.GetObjectKind().GroupVersionKind()
	if known, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		kind = known[0]
	}
	f, raw := newForm(kind), must(obj.(marshaler).Marshal())
	if wantsJSON(in) {
		write(out, code, jsonType, f.json(raw))
		return
	}
	write(out, code, protobuf, f.appendEnvelope(nil, raw))
}

func write(out http.ResponseWriter, code int, contentType string, body []byte) {
	out.Header().Set("Content-Type", contentType)
	out.Header().Set("Content-Length", strconv.Itoa(len(body)))
	out.WriteHeader(code)
	_, _ = out.Write(body) // who asked may be gone
}

// success is the answer to a bind, in both encodings.
var success = func() (encoded struct{ protobuf, json []byte }) {
	status := &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}
	encoded.protobuf = newForm(schema.GroupVersionKind{Version: "v1", Kind: "Status"}).
		appendEnvelope(nil, must(status.Marshal()))
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	encoded.json = must(json.Marshal(status))
	return encoded
}()

func succeed(out http.ResponseWriter, in *http.Request) {
	if wantsJSON(in) {
		write(out, http.StatusCreated, jsonType, success.json)
		return
	}
	write(out, http.StatusCreated, protobuf, success.protobuf)
}

// fail writes an error, in JSON, which every client reads.
func fail(out http.ResponseWriter, err error) {
	known, ok := err.(apierrors.APIStatus)
	if !ok {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	write(out, int(s.Code), jsonType, must(json.Marshal(s)))
}
