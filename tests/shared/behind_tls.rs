//! A server behind TLS that asks for certificates, with an authority of the test's own.

use std::fs;
use std::path::Path;

use dualgauge::config::load::{Sources, load};
use dualgauge::store::{Store, StoreSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::server::Server;
use crate::{at, is_away, read_when_back};

type Authority = CertifiedIssuer<'static, KeyPair>;

/// The name tells it from those whom it certifies: who bears the name of his issuer is taken to have signed himself.
fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a name, and its key.
fn certified(by: &Authority, name: &str) -> [String; 2] {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, by).unwrap();
    [certificate.pem(), key.serialize_pem()]
}

/// A store as a configuration in this folder says it.
async fn store(folder: &Path, port: u16, tls: &str) -> Store {
    let main = folder.join("dualgauge.toml");
    let text = format!(
        "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n[rollout.store]\n\
         url = 'rediss://127.0.0.1:{port}/3'\ntimeout = '2s'\n[rollout.store.tls]\n{tls}"
    );
    fs::write(&main, text).unwrap();
    let sources = Sources {
        file: Some(main),
        ..Sources::default()
    };
    let config = load(&sources).unwrap();
    Store::open(&StoreSettings::new(&config.rollout))
        .await
        .unwrap()
}

#[tokio::test]
#[ignore = "needs redis-server"]
async fn a_server_behind_tls_is_asked_by_whoever_believes_it_and_is_believed() {
    let (own, foreign) = (authority("own"), authority("foreign"));
    let folder = tempfile::tempdir().unwrap();
    let files = |name: &str, [certificate, key]: [String; 2]| {
        fs::write(folder.path().join(format!("{name}.pem")), certificate).unwrap();
        fs::write(folder.path().join(format!("{name}.key")), key).unwrap();
    };
    fs::write(folder.path().join("own-ca.pem"), own.pem()).unwrap();
    fs::write(folder.path().join("foreign-ca.pem"), foreign.pem()).unwrap();
    files("client", certified(&own, "dualgauge"));
    let [certificate, key] = certified(&own, "127.0.0.1");
    let (mut server, port) = Server::start_behind_tls(&own.pem(), &certificate, &key);
    let shown = "certificate = 'client.pem'\nkey = 'client.key'\n";

    let tls = format!("ca = 'own-ca.pem'\n{shown}");
    let mut good = store(folder.path(), port, &tls).await;
    assert_eq!(good.commit(0, "1").await.unwrap(), 1);
    assert_eq!(good.read(0).await.unwrap(), Some(at(1, "1")));
    assert_eq!(good.read(1).await.unwrap(), None);

    // Its certificate is of nobody that is believed, or for another name; or this end has none to show.
    for (tls, why) in [
        (format!("ca = 'foreign-ca.pem'\n{shown}"), "certificate"),
        (shown.to_owned(), "certificate"),
        (
            format!("server_name = 'redis.internal'\n{tls}"),
            "certificate",
        ),
        ("ca = 'own-ca.pem'\n".to_owned(), "ertificate"),
    ] {
        let mut refused = store(folder.path(), port, &tls).await;
        let error = refused.read(0).await.unwrap_err();
        let said = format!("{error:?}");
        assert!(is_away(&error) && said.contains(why), "{tls}: {said}");
    }

    // The connection has broken meanwhile, and is opened anew.
    assert!(server.run_again());
    let back = read_when_back(&mut good, 0).await.unwrap();
    assert_eq!(back, Some(at(1, "1")));
}
