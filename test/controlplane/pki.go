package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of every certificate. A local control plane does not live longer.
const validity = 365 * 24 * time.Hour

// keyPair is a certificate and its private key, in PEM.
type keyPair struct{ cert, key []byte }

// authority signs the certificates of one control plane.
type authority struct {
	// dir holds ca.crt, ca.key, the API server's pair and the service accounts' key.
	dir     string
	pair    keyPair
	cert    *x509.Certificate
	private *ecdsa.PrivateKey
}

// loadAuthority reads the authority in dir, or makes one with the API server's certificate and the service accounts'
// key.
func loadAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	if _, err := os.Stat(a.file("apiserver.crt")); err != nil {
		if err := a.create(); err != nil {
			return nil, fmt.Errorf("making certificates: %w", err)
		}
	}
	cert, err := os.ReadFile(a.file("ca.crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(a.file("ca.key"))
	if err != nil {
		return nil, err
	}
	return a, a.read(keyPair{cert: cert, key: key})
}

// read takes the authority's own pair.
func (a *authority) read(p keyPair) error {
	cert, _ := pem.Decode(p.cert)
	key, _ := pem.Decode(p.key)
	if cert == nil || key == nil {
		return fmt.Errorf("%s: no PEM in ca.crt or ca.key", a.dir)
	}
	var err error
	if a.cert, err = x509.ParseCertificate(cert.Bytes); err != nil {
		return err
	}
	a.pair = p
	a.private, err = x509.ParseECPrivateKey(key.Bytes)
	return err
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// create writes all files; the API server's certificate, which says that the rest is there, comes last.
func (a *authority) create() error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	ca, err := newKeyPair(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "jobtree-local"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil)
	if err != nil {
		return err
	}
	if err := a.read(ca); err != nil {
		return err
	}
	accounts, err := newKeyPair(&x509.Certificate{Subject: pkix.Name{CommonName: "service-accounts"}}, nil)
	if err != nil {
		return err
	}
	server, err := a.serverPair("kube-apiserver", firstServiceIP)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"ca.key", ca.key}, {"ca.crt", ca.cert}, {"service-accounts.key", accounts.key},
		{"apiserver.key", server.key}, {"apiserver.crt", server.cert},
	} {
		if err := replaceFile(a.file(f.name), f.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// clientPair is a client certificate for a user in groups.
func (a *authority) clientPair(user string, groups ...string) (keyPair, error) {
	return newKeyPair(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
}

// serverPair is a certificate for a server on 127.0.0.1, and on other addresses.
func (a *authority) serverPair(name string, others ...net.IP) (keyPair, error) {
	return newKeyPair(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: append([]net.IP{net.IPv4(127, 0, 0, 1)}, others...),
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}, a)
}

// newKeyPair makes a key and a certificate for it, signed by the authority, or by itself without one.
func newKeyPair(template *x509.Certificate, by *authority) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return keyPair{}, err
	}
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(validity)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.private
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}, nil
}
