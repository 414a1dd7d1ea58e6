//! Requests that arrive with their whole body in one read: the body bypasses hyper.

use tokio::io::ReadBuf;

use super::{Flow, Inspected, TE_LINE};
use crate::InlineBody;
use dualgauge_transport::wire::{CompleteMessage, Te};

const END: &[u8] = b"\r\n";

impl<S> Inspected<S> {
    /// Extracts the body of a request whose head begins at `start` in the reader's buffer and whose last header line
    /// ends at `end`. On `Flow::Done` the buffer holds the head alone; otherwise it is unchanged.
    pub(super) fn extract_inline_body(
        &mut self,
        buf: &mut ReadBuf<'_>,
        start: usize,
        end: usize,
        te: Te,
    ) -> Flow {
        let announced = self.follower.announces();
        let received = (buf.filled().len() - end - END.len()) as u64;
        let has_room = buf.capacity() - end >= TE_LINE.len() + END.len();
        if announced != Some(received) || !has_room || !self.inspection.can_record_inline_body() {
            return Flow::Again;
        }
        let message = &mut buf.filled_mut()[start..];
        let whole =
            CompleteMessage::request(message).filter(|whole| start + whole.head == end + END.len());
        let Some(body) = whole.and_then(|whole| InlineBody::copy(message, &whole)) else {
            return Flow::Again;
        };
        // The inspector already has the head, and knows only the length of the body.
        self.follower.feed(&buf.filled()[end..]);
        let number = self.follower.message();
        self.inspection.record_inline_body(number, body);
        buf.set_filled(end);
        if te == Te::Absent {
            buf.put_slice(TE_LINE);
        }
        buf.put_slice(END);
        Flow::Done
    }
}
