//! Splitting of response bodies, and detection of complete and incomplete delivery.

use std::convert::Infallible;
use std::iter::zip;

use futures_util::{FutureExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use proptest::prelude::*;

use super::*;

impl<D: Debug + 'static> OnAbort for Full<D> {
    fn on_abort(&mut self, _cause: Option<&str>) {}
}

type Frames = stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

/// Returns a body of chunks with these lengths; each chunk repeats another byte.
fn pieces(lengths: &[usize]) -> StreamBody<Frames> {
    let frames = zip(1u8.., lengths).map(|(fill, length)| {
        let piece = Bytes::from(vec![fill; *length]);
        Ok(Frame::data(piece))
    });
    StreamBody::new(stream::iter(frames.collect::<Vec<_>>()))
}

impl OnAbort for StreamBody<Frames> {
    fn on_abort(&mut self, _cause: Option<&str>) {}
}

/// A body that records each abort and its reason.
#[derive(Debug)]
struct Noting<B>(B, Rc<RefCell<Vec<Option<String>>>>);

impl<B: Body<Data = Bytes> + Unpin> Body for Noting<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl<B: Debug + 'static> OnAbort for Noting<B> {
    fn on_abort(&mut self, cause: Option<&str>) {
        self.1.borrow_mut().push(cause.map(str::to_owned));
    }
}

/// Returns the next chunk, if there is one.
async fn piece(taken: &mut TrackedBody<impl AbortableBody>) -> Option<TrackedChunk> {
    if taken.is_end_stream() {
        return None;
    }
    Some(taken.frame().await?.unwrap().into_data().unwrap())
}

fn take(mut piece: TrackedChunk) -> Bytes {
    piece.copy_to_bytes(piece.remaining())
}

/// Returns the lengths of all chunks, and their bytes.
async fn handed_out(body: impl AbortableBody) -> (Vec<usize>, Vec<u8>) {
    let mut taken = TrackedBody::new(body, Rc::default());
    let (mut lengths, mut all) = (Vec::new(), Vec::new());
    while let Some(piece) = piece(&mut taken).await {
        lengths.push(piece.remaining());
        all.extend_from_slice(&take(piece));
    }
    (lengths, all)
}

#[tokio::test]
async fn a_short_answer_is_one_piece() {
    let body = Full::new(Bytes::from_static(b"[1]"));
    assert_eq!(handed_out(body).await.0, [3]);
}

#[tokio::test]
async fn a_long_answer_is_small_pieces_and_its_last_byte() {
    let body = Full::new(Bytes::from(vec![7; 2 * PIECE + 5]));
    assert_eq!(handed_out(body).await.0, [PIECE, PIECE, 4, 1]);
    let body = Full::new(Bytes::from(vec![7; SHORT + 1]));
    assert_eq!(handed_out(body).await.0, [SHORT, 1]);
}

#[tokio::test]
async fn the_end_of_a_response_without_length_waits_for_everything_before_it() {
    let mut taken = TrackedBody::new(pieces(&[5]), Rc::default());
    let mut only = piece(&mut taken).await.unwrap();
    only.advance(4);
    assert!(taken.frame().now_or_never().is_none());
    only.advance(1);
    assert!(taken.frame().now_or_never().unwrap().is_none());
}

#[tokio::test]
async fn trailers_wait_as_the_end_does() {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let frames = [
        Ok(Frame::data(Bytes::from_static(b"[1]"))),
        Ok(Frame::trailers(trailers.clone())),
    ];
    let body = StreamBody::new(stream::iter(Vec::from(frames)));
    let mut taken = TrackedBody::new(body, Rc::default());
    let only = piece(&mut taken).await.unwrap();
    assert!(taken.frame().now_or_never().is_none());
    take(only);
    let end = taken.frame().await.unwrap().unwrap();
    assert_eq!(end.into_trailers().unwrap(), trailers);
    assert!(taken.frame().await.is_none());
}

/// Returns a body that fails after these chunks.
fn torn(pieces: &[&'static [u8]]) -> impl AbortableBody<Error = &'static str> {
    let pieces = pieces.iter().copied().map(Bytes::from_static);
    let frames = pieces.map(|piece| Ok(Frame::data(piece)));
    let frames: Vec<_> = frames.chain([Err("torn")]).collect();
    Noting(StreamBody::new(stream::iter(frames)), Rc::default())
}

#[tokio::test]
async fn an_error_waits_for_everything_before_it() {
    let mut taken = TrackedBody::new(torn(&[b"[1"]), Rc::default());
    let only = taken.frame().await.unwrap().unwrap();
    assert!(taken.frame().now_or_never().is_none());
    take(only.into_data().unwrap());
    assert_eq!(taken.frame().await.unwrap().unwrap_err(), "torn");
    assert!(taken.is_end_stream());
}

#[tokio::test]
async fn an_error_before_any_byte_waits_for_the_head() {
    let mut taken = TrackedBody::new(torn(&[]), Rc::default());
    let mark = taken.frame().await.unwrap().unwrap();
    let mark = mark.into_data().unwrap();
    assert_eq!(mark.remaining(), 0);
    assert!(taken.frame().now_or_never().is_none());
    drop(mark);
    assert!(taken.frame().now_or_never().unwrap().unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_an_untaken_chunk_is_limited() {
    let (pace, left) = (Rc::<DeliveryPace>::default(), Rc::default());
    let body = Noting(Full::new(Bytes::from(vec![7; 3 * PIECE])), Rc::clone(&left));
    let ending = AbortReason(pace.clone());
    let mut taken = TrackedBody::new(body, pace.clone());
    let patience = Duration::from_secs(30);
    let began = clock::now();
    for _ in 0..2 {
        let piece = piece(&mut taken).await.unwrap();
        tokio::time::advance(Duration::from_secs(20)).await;
        take(piece);
    }
    // A chunk that is written in part does not count as delivered.
    let mut third = piece(&mut taken).await.unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    third.advance(1);
    pace.wait_for_stall(patience).await;
    assert_eq!(clock::now() - began, Duration::from_secs(70));
    drop((taken, third, ending));
    let why = "the client read nothing for too long";
    assert_eq!(*left.borrow(), [Some(why.to_owned())]);
}

/// Hands out at most `asked` chunks; the client reads all of them, except the last bytes of the chunk that `lost`
/// names. Returns the number of bytes read, and the recorded aborts.
fn went(
    body: impl AbortableBody,
    asked: usize,
    lost: Option<(usize, usize)>,
) -> (usize, Vec<Option<String>>) {
    let (pace, left) = (Rc::<DeliveryPace>::default(), Rc::default());
    let ending = AbortReason(pace.clone());
    let mut taken = TrackedBody::new(Noting(body, Rc::clone(&left)), pace);
    let next = |_| piece(&mut taken).now_or_never().flatten();
    let mut out: Vec<TrackedChunk> = (0..asked).map_while(next).collect();
    let mut length = 0;
    if let Some((at, rest)) = lost
        && at < out.len()
    {
        let mut piece = out.remove(at);
        length += piece.remaining().saturating_sub(rest);
        piece.advance(length);
    }
    length += out
        .into_iter()
        .map(|piece| take(piece).len())
        .sum::<usize>();
    // Polls for the end, since the body may not have announced it.
    drop(piece(&mut taken).now_or_never());
    drop(taken);
    drop(ending);
    let left = left.take();
    (length, left)
}

proptest! {
    #[test]
    fn nothing_is_lost_and_the_length_is_known(
        lengths in prop::collection::vec(0usize..3 * PIECE, 0..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let whole: Vec<u8> = zip(1u8.., &lengths)
            .flat_map(|(fill, length)| vec![fill; *length])
            .collect();
        let (lengths, all) = runtime.block_on(handed_out(pieces(&lengths)));
        prop_assert!(lengths.iter().all(|length| *length <= PIECE));
        prop_assert_eq!(&all, &whole);
        let mut taken = TrackedBody::new(Full::new(Bytes::from(whole)), Rc::default());
        for _ in 0..3 {
            let left = taken.size_hint().exact().unwrap();
            let Some(piece) = runtime.block_on(piece(&mut taken)) else {
                break;
            };
            let passed = take(piece).len() as u64;
            prop_assert_eq!(taken.size_hint().exact(), Some(left - passed));
        }
    }

    #[test]
    fn an_answer_is_left_where_some_of_it_is_not_taken(
        lengths in prop::collection::vec(1usize..2 * PIECE, 1..4),
        asked in 1usize..12,
        lost in prop::option::of((0usize..8, 1usize..PIECE)),
    ) {
        let all = lengths.iter().sum::<usize>();
        let whole = Bytes::from(vec![7; all]);
        for (taken, left) in [
            went(pieces(&lengths), asked, lost),
            went(Full::new(whole), asked, lost),
        ] {
            prop_assert_eq!(left.is_empty(), taken == all, "{} of {}: {:?}", taken, all, left);
            prop_assert!(left.is_empty() || left == [None]);
        }
    }
}
