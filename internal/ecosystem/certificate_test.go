// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// Clients that trust the returned bundle accept the certificate for the address and for the names that a component asks
// for, and the key is in the one form that all components read.
func TestCertificateIsGoodForAddressAndNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	bundle, err := writeCertificate(dir, "webhook.example.svc")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle has no certificate")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "localhost", "webhook.example.svc"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, err := os.ReadFile(filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(key)
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		t.Error(err)
	}
}
